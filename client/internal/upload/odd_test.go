package upload

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// What odd servers do with Content-Range.
const (
	replaces = iota // They keep the part for the whole.
	keeps           // They write the part into the file.
	forgets         // So do they, but of two at once they lose one.
)

// odd is a server of files with habits, and WebDAV if dav says so.
type odd struct {
	mu    sync.Mutex
	files map[string][]byte
	// asked are the requests, as METHOD PATH.
	asked []string

	dav    bool
	ranged int
	// refuses are what methods are answered with; "PUT range" is a PUT with Content-Range.
	refuses map[string]int
	// stores is how much of a long file it stores, as a part of that.
	stores float64
	// says is added to the answers to HEAD and GET.
	says http.Header
	// before is asked before a request; it may answer it. Requests are numbered from 1 on.
	before func(number int, w http.ResponseWriter, r *http.Request) (answered bool)
}

func newOdd() *odd {
	return &odd{files: map[string][]byte{"/dir/film": []byte("the old film")}, refuses: map[string]int{}, stores: 1, says: http.Header{}}
}

// stored returns how many bytes of a file there are.
func (s *odd) stored(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.files[path])
}

func (s *odd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked = append(s.asked, r.Method+" "+r.URL.Path)
	number, before, refusal := len(s.asked), s.before, s.refuses[r.Method]
	if said := r.Header.Get("Content-Range"); said != "" && refusal == 0 {
		refusal = s.refuses["PUT range"]
	}
	s.mu.Unlock()
	switch {
	case before != nil && before(number, w, r):
	case refusal != 0:
		w.WriteHeader(refusal)
	case r.Method == http.MethodPut:
		s.put(w, r)
	default:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.answer(w, r)
	}
}

// answer does all but PUT.
func (s *odd) answer(w http.ResponseWriter, r *http.Request) {
	content, found := s.files[r.URL.Path]
	switch {
	case r.Method == http.MethodOptions:
		if s.dav {
			w.Header().Set("DAV", "1, 2")
		}
	case !found:
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodDelete:
		delete(s.files, r.URL.Path)
		w.WriteHeader(http.StatusNoContent)
	case r.Method == "MOVE":
		delete(s.files, r.URL.Path)
		s.files[r.Header.Get("Destination")] = content
		w.WriteHeader(http.StatusCreated)
	default:
		maps.Copy(w.Header(), s.says)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	}
}

func (s *odd) put(w http.ResponseWriter, r *http.Request) {
	var first, last, size int
	part, _ := fmt.Sscanf(r.Header.Get("Content-Range"), "bytes %d-%d/%d", &first, &last, &size)
	isPart := part == 3 && s.ranged != replaces
	var was []byte
	if isPart && s.ranged == forgets {
		s.mu.Lock()
		was = slices.Clone(s.files[r.URL.Path])
		s.mu.Unlock()
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || int64(len(body)) != r.ContentLength {
		return // A part of what should come is not kept.
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !isPart:
		first = 0
	case s.ranged == keeps:
		was = s.files[r.URL.Path]
	}
	if missing := first + len(body) - len(was); missing > 0 {
		was = append(was, make([]byte, missing)...)
	}
	copy(was[first:], body)
	if len(was) > 1000 {
		was = was[:int(s.stores*float64(len(was)))]
	}
	if s.files[r.URL.Path] = was; s.stores == 0 && len(body) > 1000 {
		delete(s.files, r.URL.Path)
	}
	w.WriteHeader(http.StatusCreated)
}

// film is the file of that name on the server.
func (s *odd) film() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.files["/dir/film"])
}

// left are the temporary files on the server.
func (s *odd) left() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Collect(maps.Keys(s.files)), func(path string) bool { return path == "/dir/film" })
}

// wasAsked reports whether there was a request of that method for a path that begins so.
func (s *odd) wasAsked(method, path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.asked, func(one string) bool { return strings.HasPrefix(one, method+" "+path) })
}
