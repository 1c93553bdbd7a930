package upload

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/tests/testkit"
)

// Servers of which nothing is known get the file in one piece.
func TestTheWholeOverOneLink(t *testing.T) {
	tests := map[string]struct {
		habit func(*odd)
		fails string
	}{
		"replaces":         {habit: func(*odd) {}},
		"refuses ranges":   {habit: func(s *odd) { s.refuses = map[string]int{"PUT range": 501} }},
		"knows only PUT":   {habit: func(s *odd) { s.refuses = map[string]int{"OPTIONS": 405, "HEAD": 405, "GET": 405} }},
		"refuses all":      {habit: func(s *odd) { s.refuses = map[string]int{"PUT": 403} }, fails: `"403 Forbidden"`},
		"knows no Expect":  {habit: func(s *odd) { s.before = refuseExpect }},
		"breaks":           {habit: func(s *odd) { s.before = breakFirst(http.StatusCreated) }},
		"breaks and locks": {habit: func(s *odd) { s.before = breakFirst(http.StatusLocked) }},
	}
	for name, test := range tests {
		for _, http2 := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, HTTP/2 %v", name, http2), func(t *testing.T) {
				t.Parallel()
				s := newOdd()
				test.habit(s)
				o := serve(t, s, http2)
				o.Ranged, o.Rescue = false, true
				summary, err := Run(context.Background(), o)
				if test.fails == "" {
					check(t, s, summary, err)
				} else if err == nil || !strings.Contains(err.Error(), test.fails) || summary.Outcome != rundir.Failed {
					t.Errorf("%v, want %q", err, test.fails)
				}
				testkit.Holds(t, !s.wasSentRanges(), "the server was sent ranges")
			})
		}
	}
}

func refuseExpect(_ int, w http.ResponseWriter, r *http.Request) bool {
	isAsked := r.Header.Get("Expect") != ""
	if isAsked {
		w.WriteHeader(http.StatusExpectationFailed)
	}
	return isAsked
}

// breakFirst breaks the connection of the first PUT. The server answers the second one with the code.
func breakFirst(code int) func(int, http.ResponseWriter, *http.Request) bool {
	var puts atomic.Int32
	return func(_ int, w http.ResponseWriter, r *http.Request) bool {
		switch puts.Add(1) {
		case 1:
			_, _ = io.CopyN(io.Discard, r.Body, 100_000)
			panic(http.ErrAbortHandler)
		case 2:
			if code == http.StatusLocked { // As a server that still writes the first one.
				w.WriteHeader(code)
				return true
			}
		}
		return false
	}
}

// A file that changes meanwhile is an error, in one piece and in ranges.
func TestAFileThatChanges(t *testing.T) {
	for _, ranged := range []bool{true, false} {
		s := keeping()
		o := serve(t, s, true)
		o.Ranged, o.Check = ranged, func() error { return fmt.Errorf("it changed") }
		summary, err := Run(context.Background(), o)
		if err == nil || err.Error() != "it changed" || summary.Outcome != rundir.Failed || !bytes.Equal(s.file("/file"), file) {
			t.Errorf("ranged %v: %v, %+v", ranged, err, summary)
		}
	}
}
