package proxy

import (
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"

	"github.com/linklab/linklab/client/internal/link"
)

// pending counts the outstanding answers of a link's connections. A connection with outstanding
// answers sends keep-alive probes, because a dead link is silent. An idle connection sends none,
// so that the radio can sleep.
type pending struct {
	mu      sync.Mutex
	answers map[*link.Conn]int
}

// follow counts the answer to a request from the choice of its connection until done is called.
// done may be called more than once.
func (o *pending) follow(request *http.Request) (followed *http.Request, done func()) {
	var mu sync.Mutex
	var conn *link.Conn
	over := false
	done = func() {
		mu.Lock()
		defer mu.Unlock()
		over = true
		if conn != nil {
			o.count(conn, -1)
			conn = nil
		}
	}
	return request.WithContext(httptrace.WithClientTrace(request.Context(), &httptrace.ClientTrace{
		GotConn: func(got httptrace.GotConnInfo) {
			mu.Lock()
			defer mu.Unlock()
			if found, ok := below[*link.Conn](got.Conn); ok && !over {
				if conn != nil { // net/http repeats the request on another connection.
					o.count(conn, -1)
				}
				conn = found
				o.count(conn, 1)
			}
		},
	})), done
}

func (o *pending) count(conn *link.Conn, change int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.answers == nil {
		o.answers = map[*link.Conn]int{}
	}
	o.answers[conn] += change
	if left := o.answers[conn]; left == 0 {
		delete(o.answers, conn)
		conn.Owes(false)
	} else {
		conn.Owes(true)
	}
}

// pendingBody is a body whose end ends the outstanding answer.
type pendingBody struct {
	io.ReadCloser
	done func()
}

func (b *pendingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.done()
	}
	return n, err
}

func (b *pendingBody) Close() error {
	defer b.done()
	return b.ReadCloser.Close()
}
