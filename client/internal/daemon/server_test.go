package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/linklab/linklab/client/internal/quota"
	"github.com/linklab/linklab/client/internal/unixsocket"
)

// serve starts a daemon and returns its socket.
func serve(t *testing.T) (path string) {
	t.Helper()
	q, stop := open(t, t.TempDir(), func(o *Options) {
		o.Links = []*quota.Link{{Name: "lte", Cap: 5000, Period: quota.Month}}
	})
	path = filepath.Join(t.TempDir(), "socket")
	listener, err := unixsocket.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error)
	go func() { served <- Serve(ctx, listener, Handler(q)) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		stop()
		if _, err := os.Lstat(path); err == nil {
			t.Error("the socket is left")
		}
	})
	return path
}

func TestTheClientUsesTheQueue(t *testing.T) {
	c := NewClient(serve(t))
	defer c.Close()
	ctx := t.Context()
	d, err := c.Add(ctx, Request{URL: "1ms", Checksum: "sha-256=00"})
	if err != nil || d.ID != 1 || d.URL != "1ms" || d.Output != "1ms" || d.Checksum != "sha-256=00" {
		t.Fatalf("Add gives %+v, %v", d, err)
	}
	if d, err = c.Wait(ctx, 1); err != nil || d.State != Complete || d.SHA256 != "ab" || d.Links["wifi"].Received != 1000 {
		t.Errorf("Wait gives %+v, %v", d, err)
	}
	if _, err := c.Add(ctx, Request{URL: "1h"}); err != nil {
		t.Error(err)
	}
	if d, err = c.Cancel(ctx, 2); err != nil || d.State != Cancelled {
		t.Errorf("Cancel gives %+v, %v", d, err)
	}
	list, err := c.List(ctx)
	if err != nil || len(list) != 2 || list[1].State != Cancelled {
		t.Errorf("List gives %+v, %v", list, err)
	}
	if d, err = c.Get(ctx, 1); err != nil || d.State != Complete {
		t.Errorf("Get gives %+v, %v", d, err)
	}
	links, err := c.Links(ctx)
	if err != nil || len(links) != 1 || links[0].Link != "lte" || links[0].Cap != 5000 || links[0].Period != quota.Month || links[0].Since.IsZero() {
		t.Errorf("Links gives %+v, %v", links, err)
	}
	for want, call := range map[string]func() error{
		"there is no such download: 7":            func() error { _, err := c.Get(ctx, 7); return err },
		"the download has ended: it is cancelled": func() error { _, err := c.Cancel(ctx, 2); return err },
		`"nonsense" is not a URL`:                 func() error { _, err := c.Add(ctx, Request{URL: "nonsense"}); return err },
	} {
		if err := call(); err == nil || err.Error() != want {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
}

func TestNoDaemon(t *testing.T) {
	c := NewClient(filepath.Join(t.TempDir(), "socket"))
	defer c.Close()
	if _, err := c.List(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "no daemon answers on ") {
		t.Errorf("the error is %v", err)
	}
}

func TestWrongRequests(t *testing.T) {
	path := serve(t)
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}
	defer transport.CloseIdleConnections()
	for _, test := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"POST", "/downloads", "https://h/f", 400, "the body is not a request such as"},
		{"POST", "/downloads", `{"url": "1s", "speed": 3}`, 400, "unknown field"},
		{"POST", "/downloads", `{"url": "` + strings.Repeat("x", maxRequest) + `"}`, 400, "too large"},
		{"POST", "/downloads", `{"url": "x"}`, 400, `"x" is not a URL`},
		{"GET", "/downloads/one", "", 400, `"one" is not the number of a download`},
		{"GET", "/downloads/1", "", 404, "there is no such download: 1"},
		{"DELETE", "/downloads/1", "", 404, "there is no such download: 1"},
		{"PUT", "/downloads", "", 405, ""},
		{"GET", "/nothing", "", 404, ""},
	} {
		request, _ := http.NewRequest(test.method, "http://multilink"+test.path, bytes.NewReader([]byte(test.body)))
		response, err := transport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(response.Body)
		response.Body.Close()
		var refusal struct{ Error string }
		json.Unmarshal(text, &refusal)
		if response.StatusCode != test.status || !strings.Contains(refusal.Error, test.want) {
			t.Errorf("%s %s: %d %s, want %d and %q", test.method, test.path, response.StatusCode, text, test.status, test.want)
		}
	}
}
