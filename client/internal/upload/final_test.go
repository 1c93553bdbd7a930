package upload

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// One PUT is enough to be refused for good, wherever in the body the server says so and resets the
// connection. A server that resets each without an answer is not sent the same for ever.
func TestARefusalAmidTheBody(t *testing.T) {
	for _, after := range []int64{0, 1 << 20, 2 << 20} {
		for _, code := range []int{403, 413, 507, 0} {
			t.Run(fmt.Sprint(code, " after ", after), func(t *testing.T) {
				t.Parallel()
				var puts, announced atomic.Int32
				o := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Method != http.MethodPut {
						http.NotFound(w, r)
						return
					}
					puts.Add(1)
					if r.Header.Get("Expect") == "100-continue" {
						announced.Add(1)
					}
					c, in, err := http.NewResponseController(w).Hijack()
					if err != nil {
						t.Error(err)
						return
					}
					defer c.Close() // What was not read resets it.
					_, _ = io.CopyN(io.Discard, in, after)
					if code > 0 {
						_, _ = fmt.Fprintf(c, "HTTP/1.1 %d No\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno", code)
					}
				}), false)
				o.Rescue, o.Ranged, o.GiveUp = true, false, 3*time.Second
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				_, err := Run(ctx, o)
				switch n := puts.Load(); {
				case ctx.Err() != nil:
					t.Errorf("it goes on after %d PUTs", n)
				case code > 0 && (n != 1 || err == nil || !strings.Contains(err.Error(), fmt.Sprint(code))):
					t.Errorf("%d PUTs: %v", n, err)
				case code == 0 && (err == nil || n > 40):
					t.Errorf("%d PUTs: %v", n, err)
				case announced.Load() == 0:
					t.Error("no PUT is announced")
				}
			})
		}
	}
}

// 307 and 308 are followed with the same method, and another origin gets no credentials. A circle ends.
func TestRedirectsOfUploads(t *testing.T) {
	for _, code := range []int{307, 308} {
		var secret atomic.Bool
		there := newOdd()
		there.before = func(_ int, _ http.ResponseWriter, r *http.Request) bool {
			secret.Store(secret.Load() || r.Header.Get("Authorization") != "" || r.Header.Get("X-Key") != "")
			return false
		}
		elsewhere := httptest.NewUnstartedServer(there)
		elsewhere.StartTLS()
		defer elsewhere.Close()
		var asked atomic.Int32
		o := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method != http.MethodPut:
				http.NotFound(w, r)
			case r.URL.Path == "/circle":
				asked.Add(1)
				w.Header().Set("Location", "/circle")
				w.WriteHeader(code)
			case r.URL.Path == "/file":
				w.Header().Set("Location", "/next")
				w.WriteHeader(code)
			default:
				w.Header().Set("Location", elsewhere.URL+"/there")
				w.WriteHeader(code)
			}
		}), false)
		o.Rescue, o.Ranged = true, false
		o.Header, o.Private = http.Header{"Authorization": {"Basic x"}, "X-Key": {"y"}}, []string{"X-Key"}
		if _, err := Run(context.Background(), o); err != nil || len(there.file("/there")) != len(file) || secret.Load() {
			t.Errorf("%d: %v, %d bytes, credentials %v", code, err, len(there.file("/there")), secret.Load())
		}
		circle := *o.URL
		circle.Path = "/circle"
		o.URL = &circle
		if _, err := Run(context.Background(), o); err == nil || asked.Load() != mostRedirects+1 {
			t.Errorf("%d: a circle of %d: %v", code, asked.Load(), err)
		}
	}
}
