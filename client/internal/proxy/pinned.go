package proxy

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
)

// NTLM and Negotiate authenticate a connection. A server takes all requests over it for the same
// client's. So a connection that a client has authenticated is pinned to that client: other
// clients of the proxy do not use it, and it ends with the client's connection.

// client is a connection of a program to the proxy. Its requests follow one another.
type client struct {
	mu sync.Mutex
	// pinned holds the connections of only this client, by origin.
	pinned map[string]*routes
}

type clientKey struct{}

// clients holds the connections of programs to the proxy.
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

// leave closes the client's pinned connections.
func (c *client) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, routes := range c.pinned {
		routes.close()
	}
}

// pin returns the client's own connections if a request authenticates one, or if an earlier
// request to that origin did. Otherwise it returns nil.
func (c *client) pin(request *http.Request, all *routes) *routes {
	at := originOf(request.URL)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pinned[at] == nil && slices.ContainsFunc(credentialSchemes(request.Header), authenticatesConnection) {
		c.pinned[at] = all.newPinned()
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
