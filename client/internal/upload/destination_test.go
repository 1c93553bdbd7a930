package upload

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/adler32"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/transport"
)

// serveOdd starts an odd server, of which nothing is known.
func serveOdd(t *testing.T, s *odd, http2 bool) (o Options, notes *[]string) {
	t.Helper()
	o = serve(t, s, http2)
	o.URL.Path = "/dir/film"
	o.Ranged, o.Verify, o.Rescue, notes = false, true, true, new([]string)
	o.Note = func(text string) { *notes = append(*notes, text) }
	return o, notes
}

// old is what is there before an upload.
var old = []byte("the old film")

// halfOfRange has a GET of a range answered with the first half of it.
func halfOfRange(_ int, _ http.ResponseWriter, r *http.Request) bool {
	var first, last int
	if n, _ := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &first, &last); n == 2 && r.Method == http.MethodGet {
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", first, first+(last-first)/2))
	}
	return false
}

// noneOfRange answers a GET of a range with no bytes, though it says that they are there.
func noneOfRange(_ int, w http.ResponseWriter, r *http.Request) bool {
	span, isRange := strings.CutPrefix(r.Header.Get("Range"), "bytes=")
	if isRange {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %s/%d", span, len(file)))
		w.WriteHeader(http.StatusPartialContent)
	}
	return isRange
}

// differing is an old file that differs from the sent one in its first byte.
func differing(s *odd) {
	kept := bytes.Clone(file)
	kept[0]++
	s.files["/dir/film"], s.refuses = kept, map[string]int{"PUT": 200}
}

// on has a server answer a method so: of MOVE, which needs WebDAV, only the one to the file.
func on(method string, answer func(*odd, http.ResponseWriter, *http.Request)) func(*odd) {
	return func(s *odd) {
		s.dav = method == "MOVE"
		s.before = func(_ int, w http.ResponseWriter, r *http.Request) bool {
			isMeant := r.Method == method && (!s.dav || r.Header.Get("Destination") == "/dir/film")
			if isMeant {
				answer(s, w, r)
			}
			return isMeant
		}
	}
}

func TestNothingIsBelieved(t *testing.T) {
	sum := sha256.Sum256(file)
	other := sha256.Sum256(old)
	refusing := func(of map[string]int) func(*odd) { return func(s *odd) { s.refuses = of } }
	saying := func(name, value string) func(*odd) { return func(s *odd) { s.says.Set(name, value) } }
	tests := map[string]struct {
		habit func(*odd)
		// fails is in the error, if there is one, and noted in the note.
		fails, noted string
		// isKept says that the old file is still there when it fails.
		isKept bool
	}{
		"replaces":                      {habit: func(*odd) {}},
		"keeps ranges, but has no MOVE": {habit: func(s *odd) { s.ranged = keeps }},
		"refuses ranges with 400":       {habit: refusing(map[string]int{"PUT range": 400})},
		"refuses ranges with 501":       {habit: refusing(map[string]int{"PUT range": 501})},
		"knows no OPTIONS":              {habit: refusing(map[string]int{"OPTIONS": 405})},
		"knows no HEAD":                 {habit: refusing(map[string]int{"HEAD": 405})},
		"knows no HEAD and no GET": {
			habit: refusing(map[string]int{"HEAD": 403, "GET": 403}), noted: `it answers HEAD with "403 Forbidden"`,
		},
		"refuses all":        {habit: refusing(map[string]int{"PUT": 403}), fails: `"403 Forbidden"`, isKept: true},
		"stores a part":      {habit: func(s *odd) { s.stores = 0.3 }, fails: "has 900000 bytes of the 3000000 that were sent"},
		"stores nothing":     {habit: func(s *odd) { s.stores = 0 }, fails: `has none there now: it answers "404 Not Found"`},
		"keeps the old file": {habit: refusing(map[string]int{"PUT": 200}), fails: "has 12 bytes of the 3000000", isKept: true},
		"keeps an old file of that size": {
			habit: differing, fails: "has other bytes at 0 than those that were sent",
		},
		"answers with half of a range": {habit: func(s *odd) { s.before = halfOfRange }},
		"answers with none of a range": {
			habit: func(s *odd) { s.before = noneOfRange },
			noted: `sends no bytes at 0, though it answers "206 Partial Content". The upload is not verified`,
		},
		"answers with a shorter whole": {
			habit: func(s *odd) {
				s.before = func(_ int, w http.ResponseWriter, r *http.Request) bool {
					if r.Method == http.MethodGet {
						w.Write(file[:10])
					}
					return r.Method == http.MethodGet
				}
			}, fails: "has 10 bytes of the 3000000 that were sent",
		},
		"DAV":                 {habit: func(s *odd) { s.dav = true }},
		"DAV with ranges":     {habit: func(s *odd) { s.dav, s.ranged = true, keeps }},
		"DAV, lost ranges":    {habit: func(s *odd) { s.dav, s.ranged = true, forgets }},
		"DAV, 400 to ranges":  {habit: func(s *odd) { s.dav, s.refuses = true, map[string]int{"PUT range": 400} }},
		"DAV, without MOVE":   {habit: func(s *odd) { s.dav, s.refuses = true, map[string]int{"MOVE": 403} }},
		"DAV, MOVE is a lie":  {habit: func(s *odd) { s.dav, s.refuses = true, map[string]int{"MOVE": 201} }},
		"DAV, stores a part":  {habit: func(s *odd) { s.dav, s.stores = true, 0.3 }, fails: "has 900000 bytes", isKept: true},
		"DAV, stores nothing": {habit: func(s *odd) { s.dav, s.stores = true, 0 }, fails: "has none there now", isKept: true},
		"DAV, ranges are cut": {habit: func(s *odd) { s.dav, s.ranged, s.stores = true, keeps, 0.99 }, fails: "that were sent", isKept: true},
		"breaks on OPTIONS":   {habit: on(http.MethodOptions, func(*odd, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })},
		"answers OPTIONS without an end": {habit: on(http.MethodOptions, func(_ *odd, w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		})},
		"knows no Expect": {habit: func(s *odd) {
			s.before = func(_ int, w http.ResponseWriter, r *http.Request) bool {
				isAsked := r.Header.Get("Expect") != ""
				if isAsked {
					w.WriteHeader(http.StatusExpectationFailed)
				}
				return isAsked
			}
		}},
		"DAV, the last MOVE fails": {
			habit: on("MOVE", func(_ *odd, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }),
			fails: `does not move it to its name: it answers "403 Forbidden"`, isKept: true,
		},
		"DAV, the answer to the last MOVE is lost": {habit: on("MOVE", func(s *odd, _ http.ResponseWriter, r *http.Request) {
			s.mu.Lock()
			s.answer(httptest.NewRecorder(), r)
			s.before = nil // The next one finds nothing there.
			s.mu.Unlock()
			panic(http.ErrAbortHandler)
		})},
		"right digest": {
			habit: saying("Repr-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(sum[:])+":"),
		},
		"wrong digest": {
			habit: saying("Repr-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(other[:])+":"),
			fails: "the server has another file: its SHA-256 is",
		},
		"DAV, wrong digest": {
			habit: func(s *odd) { s.dav = true; s.says.Set("OC-Checksum", "SHA1:"+strings.Repeat("0", 40)) },
			fails: "its SHA-1 is", isKept: true,
		},
	}
	for name, test := range tests {
		for _, http2 := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, HTTP/2 %v", name, http2), func(t *testing.T) {
				t.Parallel()
				s := newOdd()
				test.habit(s)
				o, notes := serveOdd(t, s, http2)
				began := time.Now()
				summary, err := Run(context.Background(), o)
				got := s.film()
				switch took := time.Since(began); {
				case took > answerPatience:
					t.Errorf("%v after %v", err, took)
				case test.fails == "" && (err != nil || !bytes.Equal(got, file)):
					t.Errorf("%v, %d bytes on the server", err, len(got))
				case test.fails != "" && (err == nil || !strings.Contains(err.Error(), test.fails) || summary.Outcome != rundir.Failed):
					t.Errorf("%v, want %q", err, test.fails)
				case test.isKept && !bytes.Equal(got, old):
					t.Errorf("the old file is gone: %d bytes", len(got))
				}
				if said := strings.Join(*notes, ""); !strings.Contains(said, test.noted) || test.noted == "" && said != "" {
					t.Errorf("notes %q, want %q", said, test.noted)
				}
				if left := s.left(); len(left) > 0 {
					t.Errorf("left on the server: %v", left)
				}
				if !s.dav && (s.wasAsked("PUT", "/dir/"+temporaryPrefix) || s.wasAsked("DELETE", "")) {
					t.Errorf("a server without WebDAV was tried: %v", s.asked)
				}
			})
		}
	}
}

// Over all links only what keeps ranges: a trial finds out who loses one of two at once.
func TestWhoGetsRanges(t *testing.T) {
	for habit, want := range map[int]bool{replaces: false, keeps: true, forgets: false} {
		s := newOdd()
		s.dav, s.ranged = true, habit
		var long atomic.Int32
		s.before = func(_ int, _ http.ResponseWriter, r *http.Request) bool {
			if r.Header.Get("Content-Range") != "" && r.ContentLength > 1000 {
				long.Add(1)
			}
			return false
		}
		o, _ := serveOdd(t, s, true)
		if _, err := Run(context.Background(), o); err != nil || long.Load() > 1 != want {
			t.Errorf("habit %d: %v, %d ranges", habit, err, long.Load())
		}
	}
}

// The link that has the file breaks: another one sends it from the beginning, under
// another name, since the server may keep the first one locked.
func TestTheWholeByAnotherLink(t *testing.T) {
	for _, dav := range []bool{true, false} {
		s := newOdd()
		s.dav = dav
		var mu sync.Mutex
		var broken []string
		s.before = func(_ int, w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPut || r.ContentLength < 1000 {
				return false
			}
			mu.Lock()
			defer mu.Unlock()
			if len(broken) == 0 {
				_, _ = io.CopyN(io.Discard, r.Body, 100_000)
				broken = append(broken, r.URL.Path)
				panic(http.ErrAbortHandler)
			}
			if dav && slices.Contains(broken, r.URL.Path) {
				w.WriteHeader(http.StatusLocked)
				return true
			}
			return false
		}
		o, _ := serveOdd(t, s, false)
		_, err := Run(context.Background(), o)
		mu.Lock()
		if err != nil || !bytes.Equal(s.film(), file) || len(s.left()) > 0 || len(broken) != 1 {
			t.Errorf("DAV %v: %v, left %v, broken %v", dav, err, s.left(), broken)
		}
		mu.Unlock()
	}
}

// Whenever an upload is interrupted, the old file stays and nothing is left.
func TestAnInterruptionLeavesTheOldFile(t *testing.T) {
	for _, method := range []string{http.MethodOptions, http.MethodPut, "MOVE", http.MethodGet, http.MethodHead} {
		s := newOdd()
		s.dav = true
		ctx, cancel := context.WithCancelCause(context.Background())
		enough := errors.New("enough")
		s.before = func(_ int, _ http.ResponseWriter, r *http.Request) bool {
			if r.Method == method {
				cancel(enough)
			}
			return false
		}
		o, notes := serveOdd(t, s, true)
		summary, err := Run(ctx, o)
		if !errors.Is(err, enough) || summary.Outcome != rundir.Interrupted || !bytes.Equal(s.film(), old) || len(s.left()) > 0 || len(*notes) > 0 {
			t.Errorf("%s: %v, %+v, left %v, notes %v", method, err, summary.Outcome, s.left(), *notes)
		}
	}
}

// What cannot be removed is named.
func TestATemporaryFileThatStays(t *testing.T) {
	s := newOdd()
	s.dav, s.refuses = true, map[string]int{http.MethodDelete: 403, "MOVE": 403}
	o, notes := serveOdd(t, s, true)
	_, err := Run(context.Background(), o)
	if said := strings.Join(*notes, "\n"); err != nil || strings.Count(said, "a temporary file may be left on the server: https://") != 2 {
		t.Errorf("%v, notes %q", err, said)
	}
}

// A link that gets no connection, or one that the server does not hear, keeps no question
// from being asked.
func TestQuestionsGoOverTheLinkThatWorks(t *testing.T) {
	s := newOdd()
	s.dav, s.ranged = true, keeps
	o, _ := serveOdd(t, s, true)
	o.Links[0].Dial = func(context.Context, string) (link.Socket, error) { return nil, errors.New("no way") }
	_, err := Run(context.Background(), o)
	if err != nil || !bytes.Equal(s.film(), file) {
		t.Errorf("%v, %d bytes", err, len(s.film()))
	}
}

func TestWhereTheWholeGoes(t *testing.T) {
	for _, address := range []string{"https://host/", "https://host", "https://host/dir/", "https://host/film?signature=x"} {
		target, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		// Nobody is asked: there is no link.
		if d, err := (&asker{upload: &upload{}}).choose(context.Background(), target); err != nil || d.isBeside() || d.ranged || d.target != target {
			t.Errorf("%s: %+v, %v", address, d, err)
		}
	}
	target, _ := url.Parse("https://host/a%2Fb/%C3%BC%20x/" + strings.Repeat("n", 255))
	beside := sibling(target)
	path := beside.EscapedPath()
	if !strings.HasPrefix(path, "/a%2Fb/%C3%BC%20x/"+temporaryPrefix) || len(path) > 60 || beside.Host != "host" {
		t.Errorf("the temporary file is %s", beside)
	}
	if sibling(target).Path == beside.Path {
		t.Error("two temporary files have one name")
	}
}

func TestChecksumsThatServersOffer(t *testing.T) {
	sum256, sumMD5 := sha256.Sum256(old), md5.Sum(old)
	sha, md := base64.StdEncoding.EncodeToString(sum256[:]), base64.StdEncoding.EncodeToString(sumMD5[:])
	hexadecimal := hex.EncodeToString(sumMD5[:])
	for _, test := range []struct {
		header map[string]string
		code   int
		want   string
	}{
		{map[string]string{"Repr-Digest": "sha-256=:" + sha + ":, x=1"}, 200, "SHA-256"},
		{map[string]string{"Digest": "SHA-256=" + sha + ",MD5=" + md}, 200, "SHA-256 MD5"},
		{map[string]string{"Digest": "MD5=" + md}, 206, "MD5"},
		{map[string]string{"Content-MD5": md}, 200, "MD5"},
		{map[string]string{"Content-MD5": md}, 206, ""},
		{map[string]string{"OC-Checksum": fmt.Sprintf("MD5:%s ADLER32:%08x", hexadecimal, adler32.Checksum(old))}, 200, "MD5 Adler-32"},
		{map[string]string{"ETag": `"` + hexadecimal + `"`}, 200, ""},
		{map[string]string{"ETag": `"` + hexadecimal + `"`, "X-Amz-Request-Id": "1"}, 200, "MD5"},
		{map[string]string{"ETag": `"` + hexadecimal + `-2"`, "X-Amz-Request-Id": "1"}, 200, ""},
		{map[string]string{"ETag": `"` + hexadecimal + `"`, "X-Amz-Request-Id": "1", "X-Amz-Server-Side-Encryption": "aws:kms"}, 200, ""},
		{map[string]string{"X-Amz-Checksum-Sha256": sha}, 200, "SHA-256"},
		{map[string]string{"Repr-Digest": "sha-256=:!:", "Digest": "sha-256=" + md, "OC-Checksum": "MD5:" + hexadecimal[1:]}, 200, ""},
	} {
		answer := transport.Answer{Code: test.code, Header: http.Header{}, Size: quantity.Bytes(len(old))}
		for name, value := range test.header {
			answer.Header.Set(name, value)
		}
		var names []string
		for _, s := range sumsOf(answer) {
			names = append(names, s.name)
			digest := s.new()
			digest.Write(old)
			if !bytes.Equal(digest.Sum(nil), s.value) {
				t.Errorf("%v: %s is %x", test.header, s.name, s.value)
			}
		}
		if got := strings.Join(names, " "); got != test.want {
			t.Errorf("%v, %d: %q, want %q", test.header, test.code, got, test.want)
		}
	}
}
