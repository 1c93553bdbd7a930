package transport

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/ranges"
)

// plainSocket is a connection of which nothing but reading and writing is used.
type plainSocket struct {
	net.Conn
	link.Socket
}

func (s plainSocket) Read(p []byte) (int, error)         { return s.Conn.Read(p) }
func (s plainSocket) Write(p []byte) (int, error)        { return s.Conn.Write(p) }
func (s plainSocket) Close() error                       { return s.Conn.Close() }
func (s plainSocket) LocalAddr() net.Addr                { return s.Conn.LocalAddr() }
func (s plainSocket) RemoteAddr() net.Addr               { return s.Conn.RemoteAddr() }
func (s plainSocket) SetDeadline(t time.Time) error      { return s.Conn.SetDeadline(t) }
func (s plainSocket) SetReadDeadline(t time.Time) error  { return s.Conn.SetReadDeadline(t) }
func (s plainSocket) SetWriteDeadline(t time.Time) error { return s.Conn.SetWriteDeadline(t) }
func (s plainSocket) Trial() *link.Trial                 { return nil }

// A server answers with the whole file, and no connection may be made for the request without
// If-Range, because the first one failed. What the server said counts.
func TestAWholeFileInPlaceOfARangeIsToldThoughNoConnectionMayFollow(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("ETag", `"it"`)
		_, _ = w.Write(make([]byte, 1<<20))
	}))
	defer server.Close()
	where, _ := url.Parse(server.URL)
	refused := &link.PacedError{After: 2 * mostWait}
	for _, err := range []error{refused, errors.New("the network is unreachable")} {
		first, dialErr := net.Dial("tcp", where.Host)
		if dialErr != nil {
			t.Fatal(dialErr)
		}
		conn, openErr := Open(t.Context(), plainSocket{Conn: first}, func(context.Context) (link.Socket, error) { return nil, err }, nil, where)
		if openErr != nil {
			t.Fatal(openErr)
		}
		_, got := conn.Get(t.Context(), Target{URL: where}, Resource{Size: 1 << 20, ETag: `"it"`}, ranges.Range{Offset: 100, Length: 100})
		if want := errors.Is(err, refused); errors.Is(got, ErrNoRanges) != want {
			t.Errorf("%v: %v", err, got)
		}
		conn.Close()
	}
	if asked.Load() != 2 {
		t.Errorf("%d requests arrived", asked.Load())
	}
}
