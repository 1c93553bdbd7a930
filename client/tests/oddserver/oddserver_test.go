package oddserver

import (
	"io"
	"net/http"
	"testing"

	"github.com/linklab/linklab/client/tests/testkit"
)

// Each habit with ranges has an effect.
func TestHabitsShow(t *testing.T) {
	content := make([]byte, 500_000)
	server, err := New(content).Start(HTTP2, "127.0.0.1")
	testkit.OK(t, err)
	defer server.Close()
	for name, want := range map[string]struct {
		status       int
		contentRange string
		length       int
	}{
		"plain":            {206, "bytes 70000-499998/500000", 429_999},
		"size-unknown":     {206, "bytes 70000-499998/*", 429_999},
		"unit-case":        {206, "Bytes 70000-499998/500000", 429_999},
		"no-content-range": {206, "", 500_000},
		"earlier":          {206, "bytes 69000-499998/500000", 430_999},
		"shorter":          {206, "bytes 70000-369999/500000", 300_000},
		"blocks":           {206, "bytes 65536-499999/500000", 434_464},
		"403-later":        {403, "", 4},
	} {
		request, err := http.NewRequest(http.MethodGet, server.URL+"/"+name+"/file", nil)
		testkit.OK(t, err)
		request.Header.Set("Range", "bytes=70000-499998")
		response, err := server.Client().Do(request)
		testkit.OK(t, err)
		got, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != want.status || response.Header.Get("Content-Range") != want.contentRange || len(got) != want.length {
			t.Errorf("%s: %s, Content-Range %q, %d bytes, %v", name, response.Status, response.Header.Get("Content-Range"), len(got), err)
		}
	}
}
