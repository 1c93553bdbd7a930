package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/tests/testkit"
)

// bodySize is the size of the file of connected: far more than the limit.
const bodySize = 16 * backlogLimit

// mostOverrun is the most that one read of the connection brings: a TLS record.
const mostOverrun = 16 << 10

type pipeSocket struct{ net.Conn }

func (pipeSocket) Await(quantity.Bytes, quantity.Bytes)   {}
func (pipeSocket) Owes(bool)                              {}
func (pipeSocket) Trial() *link.Trial                     { return nil }
func (pipeSocket) Ask() error                             { return nil }
func (pipeSocket) Answered() (time.Duration, bool, error) { return 0, false, errors.ErrUnsupported }
func (pipeSocket) RoundTrip() (link.RoundTrip, error)     { return link.RoundTrip{}, nil }

// connected runs f with a connection to a server in memory, and the resource of the server.
func connected(t *testing.T, f func(ctx context.Context, c *Conn, target Target, resource Resource)) {
	t.Helper()
	certificate, _ := testkit.Certificate("server")
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		accept := testkit.NewListener()
		go accept.Offer(far, nil)
		server := &http.Server{
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("ETag", `"1"`)
				if r.URL.Path == "/late" {
					w.Header().Set("Content-Range", fmt.Sprintf("bytes 0-0/%d", bodySize))
					w.WriteHeader(http.StatusPartialContent)
					http.NewResponseController(w).Flush()
					time.Sleep(time.Second)
					w.Write([]byte{0})
					return
				}
				http.ServeContent(w, r, "", time.Time{}, io.NewSectionReader(zeros{}, 0, bodySize))
			}),
			TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}},
			ErrorLog:  stdlog.New(io.Discard, "", 0),
		}
		go server.ServeTLS(accept, "", "")
		ctx, cancel := context.WithCancel(t.Context())
		c, err := Open(ctx, pipeSocket{near}, nil, &tls.Config{InsecureSkipVerify: true}, nil, &url.URL{Scheme: "https", Host: "server"})
		testkit.OK(t, err)
		target := Target{URL: &url.URL{Scheme: "https", Host: "server", Path: "/file"}}
		resource, err := c.Head(ctx, target)
		testkit.OK(t, err)
		f(ctx, c, target, resource)
		cancel()
		c.Close()
		server.Close()
		time.Sleep(time.Minute)
	})
}

// zeros never ends.
type zeros struct{}

func (zeros) ReadAt(p []byte, _ int64) (int, error) {
	clear(p)
	return len(p), nil
}

func all(resource Resource) ranges.Range { return ranges.Range{Length: resource.Size} }

// A reader that pauses does not fill the memory, and gets everything when it continues.
func TestAReaderThatPausesHoldsTheServerBack(t *testing.T) {
	connected(t, func(ctx context.Context, c *Conn, target Target, resource Resource) {
		body, err := c.Get(ctx, target, resource, all(resource))
		testkit.OK(t, err)
		for range 3 {
			if _, err := io.CopyN(io.Discard, body, bodySize/8); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if unread := c.Unread(); unread < backlogLimit || unread > backlogLimit+mostOverrun {
				t.Errorf("%d bytes wait for the reader, want %d", unread, backlogLimit)
			}
			testkit.Holds(t, c.Held(), "the connection is not held")
		}
		if n, err := io.Copy(io.Discard, body); n != bodySize*5/8 || err != nil {
			t.Errorf("%d bytes follow: %v", n, err)
		}
		body.Close()
		testkit.Holds(t, !c.Held() && c.backlog.sum == 0 && len(c.backlog.streams) == 0, c.backlog.sum, len(c.backlog.streams))
	})
}

// A read of nothing waits until bytes have arrived. So a caller can wait before it allocates
// memory.
func TestAReadOfNothingWaitsForData(t *testing.T) {
	connected(t, func(ctx context.Context, c *Conn, target Target, resource Resource) {
		target.URL = &url.URL{Scheme: "https", Host: "server", Path: "/late"}
		body, err := c.Get(ctx, target, resource, ranges.Range{Length: 1})
		testkit.OK(t, err)
		defer body.Close()
		begun := time.Now()
		if n, err := body.Read(nil); n != 0 || err != nil || time.Since(begun) != time.Second {
			t.Errorf("%d bytes, %v after %v, want nothing after the server's second", n, err, time.Since(begun))
		}
		if n, err := body.Read(make([]byte, 2)); n != 1 || err != nil && err != io.EOF {
			t.Errorf("%d bytes, %v, want the one that came", n, err)
		}
	})
}

// The bytes and the reader of a cancelled request hold no other request back.
func TestACancelledRequestHoldsNoOtherBack(t *testing.T) {
	for name, cancelled := range map[string]bool{"closed": false, "cancelled and closed": true} {
		t.Run(name, func(t *testing.T) {
			connected(t, func(ctx context.Context, c *Conn, target Target, resource Resource) {
				for range 3 {
					requestCtx, cancel := context.WithCancel(ctx)
					body, err := c.Get(requestCtx, target, resource, all(resource))
					testkit.OK(t, err)
					synctest.Wait()
					if !c.Held() {
						t.Fatal("the connection is not held")
					}
					if cancelled {
						cancel()
					}
					body.Close()
					cancel()
				}
				body, err := c.Get(ctx, target, resource, all(resource))
				testkit.OK(t, err)
				defer body.Close()
				if n, err := io.Copy(io.Discard, body); n != bodySize || err != nil {
					t.Errorf("%d bytes: %v", n, err)
				}
			})
		})
	}
}

// A request that is cancelled before its answer leaves nothing behind.
func TestARequestWithoutAnswerIsForgotten(t *testing.T) {
	connected(t, func(ctx context.Context, c *Conn, target Target, resource Resource) {
		gone, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := c.Get(gone, target, resource, all(resource)); !errors.Is(err, context.Canceled) {
			t.Errorf("the error is %v", err)
		}
		synctest.Wait()
		testkit.Same(t, len(c.backlog.streams), 0)
	})
}

// A connection that is held back can be closed. It is closed when the server is gone.
func TestAHeldConnectionCanBeClosed(t *testing.T) {
	connected(t, func(ctx context.Context, c *Conn, target Target, resource Resource) {
		body, err := c.Get(ctx, target, resource, all(resource))
		testkit.OK(t, err)
		synctest.Wait()
		if !c.Held() {
			t.Fatal("the connection is not held")
		}
		c.Close()
		if _, err := io.Copy(io.Discard, body); err == nil {
			t.Error("all arrives over a closed connection")
		}
		synctest.Wait()
		testkit.Holds(t, !c.Held(), "the closed connection is held")
		body.Close()
	})
}
