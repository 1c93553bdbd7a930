package link

import (
	"context"
	"slices"
	"sync"
)

// Room limits how many TCP connections of a link are open at a time in a transfer. The
// transfer itself decides when to dial. A connection that waits for its first bytes may try
// further ones beside it, of which the transfer knows nothing (see opening). These get only
// the room that is left.
//
// A nil Room has no limit.
type Room struct {
	most int

	mu sync.Mutex
	// open counts the connections.
	open int
	// trying holds an opening for each further connection, in the order in which they were
	// tried.
	trying []*opening
}

// NewRoom returns a Room for so many connections.
func NewRoom(most int) *Room { return &Room{most: most} }

type roomKey struct{}

// WithRoom returns a context whose connections are counted in a Room.
func WithRoom(ctx context.Context, r *Room) context.Context {
	return context.WithValue(ctx, roomKey{}, r)
}

// roomOf returns the Room of a context, nil if there is none.
func roomOf(ctx context.Context) *Room {
	r, _ := ctx.Value(roomKey{}).(*Room)
	return r
}

// enter counts a connection that the transfer has dialled. If there is no room, it ends the
// tries of another opening.
func (r *Room) enter() {
	if r == nil {
		return
	}
	r.mu.Lock()
	r.open++
	var last *opening
	if n := len(r.trying); r.open > r.most && n > 0 {
		last = r.trying[n-1]
	}
	r.mu.Unlock()
	if last != nil {
		last.wires.settle()
	}
}

// leave counts a connection that enter has counted as closed.
func (r *Room) leave() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open--
}

// admit counts a further connection of an opening, or returns false if there is no room.
func (r *Room) admit(o *opening) bool {
	if r == nil {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open >= r.most {
		return false
	}
	r.open++
	r.trying = append(r.trying, o)
	return true
}

// tried counts a further connection as closed. If it has replaced the one of the opening, that
// one is closed.
func (r *Room) tried(o *opening) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open--
	if i := slices.Index(r.trying, o); i >= 0 {
		r.trying = slices.Delete(r.trying, i, i+1)
	}
}
