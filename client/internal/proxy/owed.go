package proxy

import (
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"

	"github.com/linklab/linklab/client/internal/link"
)

// owed counts the answers that the connections of a link owe. While one does,
// TCP asks whether the other end is there: a connection of a link that has gone
// says nothing. An idle one is left alone, which lets the radio sleep.
type owed struct {
	mu      sync.Mutex
	answers map[*link.Conn]int
}

// follow counts the answer to a request from when its connection is known
// until the second result is called, which may be more than once.
func (o *owed) follow(request *http.Request) (followed *http.Request, done func()) {
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
				if conn != nil { // net/http repeats a request on another connection.
					o.count(conn, -1)
				}
				conn = found
				o.count(conn, 1)
			}
		},
	})), done
}

func (o *owed) count(conn *link.Conn, change int) {
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

// owedBody is a body whose end settles what was owed.
type owedBody struct {
	io.ReadCloser
	done func()
}

func (b *owedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.done()
	}
	return n, err
}

func (b *owedBody) Close() error {
	defer b.done()
	return b.ReadCloser.Close()
}
