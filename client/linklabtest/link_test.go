package linklabtest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/linklab/linklab/client/tests/testkit"
)

func TestAChangeArrivesAsItIs(t *testing.T) {
	var got string
	control := newControl()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, `{"challenge": "c"}`)
			return
		}
		body, _ := io.ReadAll(r.Body)
		got = r.Method + " " + r.URL.EscapedPath() + " " + string(body)
		w.Header().Set(proofHeader, control.signature("answer", "c", []byte("{}")))
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(server.Close)
	control.url = server.URL
	change := Change{"glow": "50 %", "impair_up": Change{"loss": "1 %", "in_order": false}}
	testkit.OK(t, control.change("wi fi", change.For(time.Second)))
	words, _ := json.Marshal(map[string]any{
		"for": "1.000000 s", "glow": "50 %", "impair_up": map[string]any{"loss": "1 %", "in_order": false},
	})
	testkit.Same(t, got, "PATCH /lab/links/wi%20fi "+string(words))
}
