package upload

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// odd is a server of files with habits.
type odd struct {
	mu    sync.Mutex
	files map[string][]byte
	// requests counts the requests. ranges says that one had a Content-Range.
	requests int
	ranges   bool
	// keepsRanges says that it writes a range into the file. It else keeps the range for the whole.
	keepsRanges bool
	// refuses are what methods are answered with; "PUT range" is a PUT with Content-Range.
	refuses map[string]int
	// before is asked before a request; it may answer it. Requests are numbered from 1 on.
	before func(number int, w http.ResponseWriter, r *http.Request) (answered bool)
}

func newOdd() *odd {
	return &odd{files: map[string][]byte{}, refuses: map[string]int{}}
}

// file returns what the server has of a file.
func (s *odd) file(path string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Clone(s.files[path])
}

func (s *odd) wasSentRanges() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ranges
}

func (s *odd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests++
	number, before, refusal := s.requests, s.before, s.refuses[r.Method]
	if said := r.Header.Get("Content-Range"); said != "" {
		s.ranges = true
		if refusal == 0 {
			refusal = s.refuses["PUT range"]
		}
	}
	s.mu.Unlock()
	switch {
	case before != nil && before(number, w, r):
	case refusal != 0:
		w.WriteHeader(refusal)
	case r.Method == http.MethodPut:
		s.put(w, r)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (s *odd) put(w http.ResponseWriter, r *http.Request) {
	var first, last, size int
	part, _ := fmt.Sscanf(r.Header.Get("Content-Range"), "bytes %d-%d/%d", &first, &last, &size)
	body, err := io.ReadAll(r.Body)
	if err != nil || int64(len(body)) != r.ContentLength {
		return // A part of what should come is not kept.
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var kept []byte
	if part == 3 && s.keepsRanges {
		kept = s.files[r.URL.Path]
	} else {
		first = 0
	}
	if missing := first + len(body) - len(kept); missing > 0 {
		kept = append(kept, make([]byte, missing)...)
	}
	copy(kept[first:], body)
	s.files[r.URL.Path] = kept
	w.WriteHeader(http.StatusCreated)
}
