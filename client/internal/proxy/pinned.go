package proxy

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
)

// NTLM and Negotiate authenticate a connection, and a server takes all that
// comes over it for the same client's. So what a client authenticated is its
// own: other connections to the proxy do not get it, and it ends with that of
// the client.

// client is a connection of a program to the proxy. Its requests come one
// after another.
type client struct {
	mu sync.Mutex
	// pinned are, by origin, connections of this client alone.
	pinned map[string]*routes
}

type clientKey struct{}

// clients are the connections of programs to the proxy.
type clients struct{ byConn sync.Map }

func (all *clients) arrive(ctx context.Context, conn net.Conn) context.Context {
	c := &client{pinned: map[string]*routes{}}
	all.byConn.Store(conn, c)
	return context.WithValue(ctx, clientKey{}, c)
}

func (all *clients) changed(conn net.Conn, state http.ConnState) {
	if state != http.StateClosed && state != http.StateHijacked {
		return
	}
	if c, ok := all.byConn.LoadAndDelete(conn); ok {
		c.(*client).leave()
	}
}

func (all *clients) close() {
	all.byConn.Range(func(_, c any) bool {
		c.(*client).leave()
		return true
	})
}

// leave closes what is the client's alone.
func (c *client) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, routes := range c.pinned {
		routes.close()
	}
}

// pin returns connections for this client alone if a request authenticates one,
// or an earlier one to that origin did; else nil.
func (c *client) pin(request *http.Request, all *routes) *routes {
	at := originOf(request.URL)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pinned[at] == nil && slices.ContainsFunc(credentialSchemes(request.Header), authenticatesConnection) {
		c.pinned[at] = all.newOfOne()
	}
	return c.pinned[at]
}

// unpin forgets connections that failed.
func (c *client) unpin(request *http.Request) {
	at := originOf(request.URL)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pinned[at].close()
	delete(c.pinned, at)
}
