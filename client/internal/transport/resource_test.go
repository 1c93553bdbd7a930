package transport

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/tests/testkit"
)

func TestParseContentRange(t *testing.T) {
	for value, want := range map[string]quantity.Bytes{"bytes 5-9/10": 10, "Bytes 5-9/10": 10, "bytes 5-9/*": -1} {
		part, size, err := parseContentRange(value)
		testkit.Holds(t, part == (ranges.Range{Offset: 5, Length: 5}) && size == want && err == nil, value, part, size, err)
	}
	for _, value := range []string{
		"", "bytes", "bytes 5-9", "bytes */10", "items 5-9/10", "bytes 9-5/10",
		"bytes 5-10/10", "bytes -5-9/10", "bytes +5-9/10", "bytes 5-9/10 ", "bytes 5-9223372036854775808/9223372036854775809",
	} {
		if _, _, err := parseContentRange(value); err == nil || !errors.Is(err, ErrNoRanges) || !strings.Contains(err.Error(), "allowed is bytes FIRST-LAST/SIZE") {
			t.Errorf("%q: error %v, want one that says what is allowed", value, err)
		}
	}
}

// check returns the error of a response to a request for a range.
func check(r Resource, response *http.Response, want ranges.Range) error {
	_, _, err := r.part(response, want)
	return err
}

// Messages quote and shorten text from a server that could control a terminal.
func TestServerTextInErrorsIsPrintable(t *testing.T) {
	const hostile = "\"\u009b2J\u202e\x7f\xff\""
	r := Resource{Size: 10, ETag: `"1"`}
	for name, err := range map[string]error{
		"ETag":       r.checkValidator(&http.Response{Header: http.Header{"Etag": {hostile + strings.Repeat("x", 1e6)}}}),
		"ETag first": Resource{ETag: hostile}.checkValidator(&http.Response{Header: http.Header{}}),
		"status":     &StatusError{Code: 404, Status: "404 " + hostile + strings.Repeat("x", 1e6)},
		"no phrase":  &StatusError{Code: 599, Status: "599"},
		"range":      check(r, &http.Response{StatusCode: 416, Header: http.Header{"Content-Range": {hostile}}}, ranges.Range{Length: 10}),
	} {
		text := err.Error()
		if i := strings.IndexFunc(text, func(c rune) bool { return !strconv.IsPrint(c) }); i >= 0 || len(text) > 2000 {
			t.Errorf("%s: %d bytes, %.300q", name, len(text), text)
		}
		testkit.Holds(t, name == "no phrase" || strings.Contains(text, `\u009b2J\u202e\x7f\xff`), name, text)
	}
}

func FuzzParseContentRange(f *testing.F) {
	f.Add("bytes 5-9/10")
	f.Fuzz(func(t *testing.T, value string) {
		part, size, err := parseContentRange(value)
		if err == nil && (part.Offset < 0 || part.Length <= 0 || part.End() < part.Length || size != -1 && part.End() > size) {
			t.Errorf("%q is accepted as %+v of %d", value, part, size)
		}
	})
}

// Package download tests the many wrong answers. This test has the one that a client must
// never write.
func TestPartOfAnotherResource(t *testing.T) {
	r := Resource{Size: 10, ETag: `"a"`}
	response := &http.Response{StatusCode: http.StatusPartialContent, ContentLength: 5, Header: http.Header{}}
	response.Header.Set("Content-Range", "bytes 5-9/10")
	response.Header.Set("ETag", `"a"`)
	if err := check(r, response, ranges.Range{Offset: 5, Length: 5}); err != nil {
		t.Error(err)
	}
	response.Header.Del("ETag")
	if err := check(r, response, ranges.Range{Offset: 5, Length: 5}); err == nil {
		t.Error("a part without the ETag is accepted")
	}
}

// Each number of Content-Range counts: which bytes come, and of how many. What holds the range
// is cut (mostSurplus).
func TestEachNumberOfContentRangeCounts(t *testing.T) {
	const content = "0123456789abcdefghij"
	r := Resource{Size: quantity.Bytes(len(content)), ETag: `"a"`}
	for said, right := range map[string]bool{
		"bytes 5-9/20": true, "bytes 5-9/*": true, "bytes 5-10/20": true, "bytes 4-9/20": true, "bytes 4-10/20": true,
		"bytes 5-8/20": false, "bytes 6-9/20": false, "bytes 4-8/20": false, "bytes 6-10/20": false,
		"bytes 5-9/19": false, "bytes 5-9/21": false,
	} {
		part, _, err := parseContentRange(said)
		testkit.OK(t, err)
		length := int64(part.Length)
		for _, announced := range []int64{-1, length, length - 1, length + 1} {
			response := &http.Response{
				StatusCode: http.StatusPartialContent, ContentLength: announced,
				Header: http.Header{"Content-Range": {said}, "Etag": {`"a"`}},
				Body:   io.NopCloser(strings.NewReader(content[part.Offset:part.End()])),
			}
			body, err := r.Body(response, ranges.Range{Offset: 5, Length: 5})
			var came []byte
			if err == nil {
				came, err = io.ReadAll(body)
			}
			agrees := announced < 0 || announced == length
			testkit.Same(t, err == nil && string(came) == content[5:10], (right && agrees), said, announced, came, err)
		}
	}
}

// A range may come in pieces of at least 16 KiB, the last one aside. Body wants it in one piece.
func TestAShortAnswerIsAPieceOrRefused(t *testing.T) {
	r := Resource{Size: 100_000, ETag: `"a"`}
	for want, pieces := range map[quantity.Bytes]map[quantity.Bytes]bool{
		50_000: {leastPiece - 1: false, leastPiece: true, 49_999: true},
		10_000: {9_999: false, 1: false},
	} {
		for length, isPiece := range pieces {
			response := &http.Response{
				StatusCode: http.StatusPartialContent, ContentLength: int64(length),
				Header: http.Header{"Content-Range": {fmt.Sprintf("bytes 7-%d/100000", 6+length)}, "Etag": {`"a"`}},
				Body:   io.NopCloser(strings.NewReader("")),
			}
			asked := ranges.Range{Offset: 7, Length: want}
			_, part, err := r.part(response, asked)
			testkit.Holds(t, (err == nil) == isPiece && (!isPiece || part == (ranges.Range{Offset: 7, Length: length})), length, want, part, err)
			if _, err := r.Body(response, asked); err == nil {
				t.Errorf("%d of %d bytes count as all", length, want)
			}
		}
	}
}

func TestPartialTellsAllOfTheResource(t *testing.T) {
	response := &http.Response{StatusCode: http.StatusPartialContent, Header: http.Header{}}
	response.Header.Set("Content-Range", "bytes 0-0/10")
	response.Header.Set("Repr-Digest", "sha-256=:"+strings.Repeat("A", 43)+"=:")
	if resource, part, err := Partial(response); err != nil || resource.Size != 10 || len(resource.SHA256) != 32 || part != (ranges.Range{Length: 1}) {
		t.Errorf("got %+v, %+v, %v", resource, part, err)
	}
	response.Header.Set("Content-Encoding", "gzip")
	if resource, _, err := Partial(response); err != nil || resource.Coding != "gzip" {
		t.Errorf("an encoded part: %+v, %v", resource, err)
	}
}

// A file that a server encodes is taken as it comes if all answers have the same coding.
func TestCodings(t *testing.T) {
	part := ranges.Range{Offset: 7, Length: 2}
	for first, others := range map[string]map[string]bool{
		"":                  {"": true, "identity": true, " , ": true, "gzip": false},
		"gzip":              {"x-gzip": true, "GZIP": true, "": false, "gzip, gzip": false},
		"aws-chunked, gzip": {"aws-chunked,gzip": true, "gzip, aws-chunked": false},
		"UTF-8":             {"utf-8": true, "none": false},
	} {
		response := func(coding string) *http.Response {
			return &http.Response{StatusCode: http.StatusPartialContent, ContentLength: 2, Body: http.NoBody, Header: http.Header{
				"Content-Range": {"bytes 7-8/10"}, "Content-Encoding": {coding}, "Etag": {`"1"`},
			}}
		}
		resource, _, err := Partial(response(first))
		testkit.OK(t, err)
		for coding, isSame := range others {
			if _, _, err := resource.part(response(coding), part); (err == nil) != isSame {
				t.Errorf("%q, then %q: %v", first, coding, err)
			}
			other, _, _ := Partial(response(coding))
			testkit.Same(t, (resource.CheckSame(other) == nil), isSame, first, coding)
			whole := response(coding)
			whole.StatusCode, whole.ContentLength = http.StatusOK, 10
			testkit.Same(t, (resource.checkWhole(whole) == nil), isSame, first, coding)
		}
	}
}

// Bytes that arrive are counted once over any protocol.
func TestReceivedBytesAreCountedOnce(t *testing.T) {
	const size = 4_000_000
	for _, http2 := range []bool{true, false} {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", `"1"`)
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(make([]byte, size)))
		}))
		s.EnableHTTP2 = http2
		s.StartTLS()
		defer s.Close()
		u, err := url.Parse(s.URL + "/file")
		testkit.OK(t, err)
		conn := connect(t, u, rootsOf(s))
		resource, err := conn.Head(t.Context(), Target{URL: u})
		testkit.OK(t, err)
		body, err := conn.Get(t.Context(), Target{URL: u}, resource, ranges.Range{Length: size})
		testkit.OK(t, err)
		if n, err := io.Copy(io.Discard, body); n != size || err != nil {
			t.Fatal(n, err)
		}
		body.Close()
		if got := conn.Received(); got < size || got > size+size/10 {
			t.Errorf("%s: %d bytes arrived, want %d and what TLS and HTTP add", conn.Protocol, int64(got), size)
		}
		conn.Close()
	}
}
