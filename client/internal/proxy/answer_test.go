package proxy

import (
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/linklab/linklab/client/tests/testkit"
)

// digested answers a GET of a part of file with all digests and signatures.
func digested(size int) http.HandlerFunc {
	content := file[:size]
	return func(w http.ResponseWriter, r *http.Request) {
		part, status := content, http.StatusOK
		h := w.Header()
		var first, last int
		switch n, _ := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &first, &last); {
		case n > 0:
			if n == 1 || last >= size {
				last = size - 1
			}
			part, status = content[first:last+1], http.StatusPartialContent
			h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", first, last, size))
		}
		h.Set("ETag", `"1"`)
		h.Set("Age", "7")
		h.Set("Content-Digest", sha256Field(part))
		h.Set("Content-MD5", md5Field(part))
		h.Set("Repr-Digest", sha256Field(content))
		h.Set("Digest", "SHA-256="+strings.Trim(strings.TrimPrefix(sha256Field(content), "sha-256="), ":"))
		h.Set("Signature-Input", `sig=("@status" "content-range" "content-digest");keyid="k"`)
		h.Set("Signature", "sig=:AAAA:")
		h.Set("Trailer", "X-End")
		w.WriteHeader(status)
		w.(http.Flusher).Flush() // Otherwise the answer has a Content-Length and no trailers.
		w.Write(part)
		h.Set("X-End", sha256Field(part))
		h.Set(http.TrailerPrefix+"X-Late", sha256Field(part))
	}
}

func sha256Field(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
}

func md5Field(content []byte) string {
	sum := md5.Sum(content)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// What an origin says of the part that the proxy requests reaches a client only if it is true
// of what the client gets.
func testWhatHoldsForAPartIsNotSaidOfTheWhole(t *testing.T, v version) {
	const content, signature, trailers = 1, 2, 4
	for _, test := range []struct {
		size     int
		asked    string
		from, to int
		kept     int
	}{
		{len(file), "", 0, len(file), 0},
		{len(file), "bytes=0-", 0, len(file), 0},
		{len(file), "bytes=1000-3000000", 1000, 3_000_001, 0},
		{len(file), "bytes=100-199", 100, 200, content | signature | trailers},
		{len(file), "bytes=5900000-", 5_900_000, len(file), content | signature | trailers},
		{1000, "bytes=0-", 0, 1000, content | signature | trailers},
		{1000, "", 0, 1000, content},
	} {
		t.Run(fmt.Sprintf("%q of %d", test.asked, test.size), func(t *testing.T) {
			o := v.serve(t, digested(test.size))
			address, _ := v.start(t, o, nil)
			var header []string
			status, contentRange := http.StatusOK, ""
			if test.asked != "" {
				header = []string{"Range", test.asked}
				status, contentRange = http.StatusPartialContent, fmt.Sprintf("bytes %d-%d/%d", test.from, test.to-1, test.size)
			}
			response, got := get(t, direct(t), "http://"+address+"/"+o.URL+"/f", header...)
			if response.StatusCode != status || !bytes.Equal(got, file[test.from:test.to]) {
				t.Fatalf("%s, %d bytes", response.Status, len(got))
			}
			whole := sha256Field(file[:test.size])
			want := map[string]string{
				"Content-Range": contentRange,
				"ETag":          `"1"`,
				"Age":           "7",
				"Repr-Digest":   whole,
				"Digest":        "SHA-256=" + strings.Trim(strings.TrimPrefix(whole, "sha-256="), ":"),
			}
			if test.kept&content != 0 {
				want["Content-Digest"], want["Content-Md5"] = sha256Field(got), md5Field(got)
			}
			if test.kept&signature != 0 {
				want["Signature"] = "sig=:AAAA:"
				want["Signature-Input"] = `sig=("@status" "content-range" "content-digest");keyid="k"`
			}
			for _, name := range []string{"Content-Range", "ETag", "Age", "Repr-Digest", "Digest", "Content-Digest", "Content-Md5", "Signature", "Signature-Input"} {
				testkit.Same(t, response.Header.Get(name), want[name], name)
			}
			end := ""
			if test.kept&trailers != 0 {
				end = sha256Field(got)
			}
			for _, name := range []string{"X-End", "X-Late"} {
				if values, said := response.Trailer[name]; said != (end != "") || response.Trailer.Get(name) != end {
					t.Errorf("the trailer %s is %q, want %q", name, values, end)
				}
			}
		})
	}
}

// A request that is signed, or valid only once, is sent once and unchanged.
func TestARequestThatMayNotVaryIsSentUnchanged(t *testing.T) {
	for _, proof := range [][2]string{
		{"Signature-Input", `sig=("@method" "range" "accept-encoding")`},
		{"Signature", "sig=:AAAA:"},
		{"DPoP", "eyJ"},
		{"Authorization", `Digest username="a", nonce="n", nc=00000001, response="r"`},
		{"Authorization", "AWS4-HMAC-SHA256 Credential=a, SignedHeaders=host;range, Signature=s"},
	} {
		for _, asked := range []string{"", "bytes=1000-"} {
			o := serve(t, false, nil)
			address, _ := start(t, o, nil)
			request, _ := http.NewRequest(http.MethodGet, o.URL+"/f", nil)
			request.Header = http.Header{proof[0]: {proof[1]}, "Accept-Encoding": {"gzip"}}
			from := 0
			if asked != "" {
				request.Header.Set("Range", asked)
				from = 1000
			}
			response, err := through(t, address).Do(request)
			testkit.OK(t, err)
			testkit.SameList(t, readAll(t, response), file[from:], proof, response.Status)
			seen := o.seen()
			if len(seen) != 1 || seen[0].Header.Get("Range") != asked || seen[0].Header.Get("Accept-Encoding") != "gzip" || seen[0].Header.Get(proof[0]) != proof[1] {
				t.Errorf("%s: the origin was asked %d times, first with %v", proof, len(seen), seen[0].Header)
			}
		}
	}
}

// If-Range has no meaning without Range. With Range, the answer may omit the description of
// the file.
func TestIfRangeWithoutRange(t *testing.T) {
	o := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-Range") == "" {
			w.Header().Set("Content-Language", "en")
		}
		content(w, r)
	})
	address, _ := start(t, o, nil)
	response, got := get(t, through(t, address), o.URL+"/f", "If-Range", `"1"`)
	if response.StatusCode != 200 || !bytes.Equal(got, file) || response.Header.Get("Content-Language") != "en" {
		t.Errorf("%s, %d bytes with %v", response.Status, len(got), response.Header)
	}
	if n := o.ranges(); n < 3 {
		t.Errorf("%d range requests were made, want several", n)
	}
}
