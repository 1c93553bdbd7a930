package transport

import (
	"cmp"
	"errors"
	"net/http"
	"strings"

	"github.com/linklab/linklab/client/internal/quantity"
)

// Resource describes what a URL stood for when the download began.
type Resource struct {
	// Size is the number of bytes, -1 if unknown.
	Size quantity.Bytes
	// ETag is the strong validator, "" if there is none. A weak one does not promise equal
	// bytes (RFC 9110 8.8.1).
	ETag string
	// LastModified is the date from the server, or "". It is the validator if there is no
	// ETag.
	LastModified string
	// SHA256 is the checksum from the server, nil if there is none.
	SHA256 []byte
	// Coding is the content coding of all answers, "" for none. The file is stored encoded.
	Coding string
	// NoRanges is true if the server does not serve ranges.
	NoRanges bool
	// IsPage is true for a web page.
	IsPage bool
	// Verified is true if a checksum will prove the whole file. Then validators do not matter.
	Verified bool
	// Server is the address of the server that answered, "" if unknown.
	Server string
}

// HasValidator reports whether a response can prove that it is a part of this resource.
func (r Resource) HasValidator() bool { return r.ETag != "" || r.LastModified != "" }

// isDated reports whether the date is the only validator. Some servers omit all validators
// in answers to HEAD, so a missing date says nothing about later answers.
func (r Resource) isDated() bool { return r.ETag == "" && r.LastModified != "" }

// newResource reads the header of an answer about a file of this size, -1 if unknown.
func newResource(response *http.Response, size quantity.Bytes) Resource {
	return Resource{
		Size:         size,
		ETag:         strongETag(response.Header),
		LastModified: response.Header.Get("Last-Modified"),
		SHA256:       reprDigest(response.Header),
		Coding:       codingOf(response.Header),
		IsPage:       IsPage(response.Header),
	}
}

// wholeResource reads the header of a 200.
func wholeResource(response *http.Response) Resource {
	r := newResource(response, quantity.Bytes(response.ContentLength))
	r.NoRanges = strings.EqualFold(response.Header.Get("Accept-Ranges"), "none")
	return r
}

func strongETag(header http.Header) string {
	etag := header.Get("ETag")
	if strings.HasPrefix(etag, "W/") {
		return ""
	}
	return etag
}

// codingOf returns the content codings of an answer, "" for none. Some servers label each file with
// one, such as x-gzip for file.gz, whatever the request accepts.
func codingOf(header http.Header) string {
	var codings []string
	for coding := range strings.SplitSeq(strings.ToLower(strings.Join(header.Values("Content-Encoding"), ",")), ",") {
		// x-gzip is gzip (RFC 9110 8.4.1.3).
		if coding = strings.TrimPrefix(strings.TrimSpace(coding), "x-"); coding != "" && coding != "identity" {
			codings = append(codings, coding)
		}
	}
	return strings.Join(codings, ", ")
}

// checkCoding returns an error for another content coding: its file has other bytes and other ranges.
func (r Resource) checkCoding(coding string) error {
	if coding != r.Coding {
		return mismatch("the server encodes the file differently in each answer: first as %q, now as %q. It was asked not to encode", cmp.Or(r.Coding, "identity"), cmp.Or(coding, "identity"))
	}
	return nil
}

// CheckSame returns an error unless other describes the same resource.
func (r Resource) CheckSame(other Resource) error {
	err := r.checkSame(other)
	if mismatch := new(MismatchError); errors.As(err, &mismatch) {
		mismatch.Server = other.Server
	}
	return err
}

func (r Resource) checkSame(other Resource) error {
	if err := r.checkCoding(other.Coding); err != nil {
		return err
	}
	switch {
	case other.Size != r.Size:
		return mismatch("the file changed on the server during the download: its size was %d and is %d bytes", r.Size, other.Size)
	case r.Verified:
	case r.HasValidator() && other.ETag != r.ETag:
		return otherValidator("the file changed on the server during the download: its ETag was %s and is %s", r.ETag, other.ETag)
	case r.isDated() && other.LastModified != r.LastModified:
		return otherValidator("the file changed on the server during the download: it was modified on %q, now on %q", r.LastModified, other.LastModified)
	}
	return nil
}

// checkWhole returns an error unless the response brings the whole resource.
func (r Resource) checkWhole(response *http.Response) error {
	if response.StatusCode != http.StatusOK && !IsWhole(response) {
		return failure(response)
	}
	if err := r.checkCoding(codingOf(response.Header)); err != nil {
		return err
	}
	if r.Size >= 0 && response.ContentLength >= 0 && quantity.Bytes(response.ContentLength) != r.Size {
		return mismatch("the file changed on the server during the download: its size was %d and is %d bytes", r.Size, response.ContentLength)
	}
	return r.checkValidator(response)
}

func (r Resource) checkValidator(response *http.Response) error {
	switch {
	case r.Verified:
	case r.ETag != "" && strongETag(response.Header) != r.ETag:
		return otherValidator("the file changed on the server during the download: its ETag was %s and is %s", r.ETag, response.Header.Get("ETag"))
	case r.isDated() && response.Header.Get("Last-Modified") != r.LastModified:
		return otherValidator("the file changed on the server during the download: it was modified on %q, now on %q", r.LastModified, response.Header.Get("Last-Modified"))
	}
	return nil
}
