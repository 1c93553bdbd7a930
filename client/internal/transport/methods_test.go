package transport

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/tests/testkit"
)

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
		first, dialErr := link.Dialer{Device: "lo"}.Dial(t.Context(), where.Host)
		testkit.OK(t, dialErr)
		conn, openErr := Open(t.Context(), first, func(context.Context) (link.Socket, error) { return nil, err }, nil, nil, where)
		testkit.OK(t, openErr)
		_, got := conn.Get(t.Context(), Target{URL: where}, Resource{Size: 1 << 20, ETag: `"it"`}, ranges.Range{Offset: 100, Length: 100})
		testkit.Same(t, errors.Is(got, ErrNoRanges), errors.Is(err, refused))
		conn.Close()
	}
	testkit.Same(t, asked.Load(), 2)
}
