package linklabtest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
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
	change := Change{"glow": "50 %", "impair_up": ImpairUp("loss: 1 %, in_order: false")["impair_up"]}
	if err := control.change("wi fi", change.For(time.Second)); err != nil {
		t.Fatal(err)
	}
	words, _ := json.Marshal(map[string]any{
		"for": "1.000000 s", "glow": "50 %", "impair_up": map[string]any{"loss": "1 %", "in_order": false},
	})
	if want := "PATCH /lab/links/wi%20fi " + string(words); got != want {
		t.Errorf("%s, wanted %s", got, want)
	}
}
