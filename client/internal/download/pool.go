package download

import (
	"math"
	"net/url"
	"sync"
	"time"

	"github.com/linklab/linklab/client/internal/transport"
)

// keepTime is how long the pool keeps a connection for a next download.
const keepTime = 30 * time.Second

// forever is longer than any download takes.
const forever = math.MaxInt64

// Pool keeps idle connections, within a download or from one download to the next one from the same
// server. To connect takes three round trips, and slow start some more: that is much of the time
// for a short part of a film. The owner closes the pool.
type Pool struct {
	mu       sync.Mutex
	kept     map[place][]*keptConn
	keepTime time.Duration
	closed   bool
}

// place is a link and a server.
type place struct{ link, scheme, authority string }

type keptConn struct {
	*transport.Conn
	timer *time.Timer
}

func NewPool() *Pool { return newPool(keepTime) }

func newPool(keepTime time.Duration) *Pool {
	return &Pool{kept: map[place][]*keptConn{}, keepTime: keepTime}
}

// Close closes all connections, and all that downloads put into the pool from now on.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for at, conns := range p.kept {
		for _, c := range conns {
			c.timer.Stop()
			c.Close()
		}
		delete(p.kept, at)
	}
}

// take returns the newest connection of the link to the server of u, or nil if there is none. A nil pool has none.
func (p *Pool) take(link string, u *url.URL) *transport.Conn {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	at := place{link, u.Scheme, transport.Address(u)}
	for conns := p.kept[at]; len(conns) > 0; conns = p.kept[at] {
		c := conns[len(conns)-1]
		p.kept[at] = conns[:len(conns)-1]
		if c.timer.Stop() && c.Usable() {
			return c.Conn
		}
		c.Close()
	}
	delete(p.kept, at)
	return nil
}

// put keeps a connection for a while.
func (p *Pool) put(link string, u *url.URL, conn *transport.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		conn.Close()
		return
	}
	conn.Socket.Owes(false)
	at := place{link, u.Scheme, transport.Address(u)}
	p.kept[at] = append(p.kept[at], &keptConn{conn, time.AfterFunc(p.keepTime, func() { p.expire(at, conn) })})
}

// expire closes a connection that no download took.
func (p *Pool) expire(at place, conn *transport.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, c := range p.kept[at] {
		if c.Conn == conn {
			p.kept[at] = append(p.kept[at][:i:i], p.kept[at][i+1:]...)
			conn.Close()
		}
	}
	if len(p.kept[at]) == 0 {
		delete(p.kept, at)
	}
}
