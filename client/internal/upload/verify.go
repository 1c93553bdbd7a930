package upload

import (
	"bytes"
	"context"
	"crypto/md5"  //nolint:gosec // It is what servers offer; it proves no origin.
	"crypto/sha1" //nolint:gosec // As above.
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"hash/adler32"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/transport"
)

const (
	// mostSamples is of how many ranges the client compares some bytes, at most twice as many.
	mostSamples = 16
	// rangeSample is how many bytes of a range it compares, and quarterSample how many of each
	// quarter of a whole file: all of 64 KiB.
	rangeSample   quantity.Bytes = 64
	quarterSample quantity.Bytes = 16 << 10
)

// differsError says how the server's file differs from the one that was sent.
type differsError struct{ reason string }

func (e *differsError) Error() string { return e.reason }

func differs(format string, arguments ...any) error {
	return &differsError{fmt.Sprintf(format, arguments...)}
}

// verify asks the server for the file's size, checksums or bytes. It fails if these are not those of the
// file. It notes a server that tells nothing.
func (a *asker) verify(ctx context.Context, at *url.URL) error {
	u := a.upload
	answer, err := a.ask(ctx, answerPatience, transport.Question{
		Method: http.MethodHead, Target: transport.Target{URL: at},
		Fields: map[string]string{"Want-Repr-Digest": "sha-256=5"},
	})
	if err != nil {
		return fmt.Errorf("the file is sent, but whether the server has it is unknown: %w", err)
	}
	head := answer
	size, told := sizeOf(answer)
	if !told {
		// Some servers have only GET.
		answer, err = a.ask(ctx, answerPatience, transport.Question{
			Method: http.MethodGet, Target: transport.Target{URL: at}, Fields: map[string]string{"Range": "bytes=0-0"},
		})
		if err != nil {
			return fmt.Errorf("the file is sent, but whether the server has it is unknown: %w", err)
		}
		size, told = sizeOf(answer)
	}
	switch {
	case answer.Code == http.StatusNotFound || answer.Code == http.StatusGone:
		return differs("the server took the file, but has none there now: it answers %s", said(answer))
	case !told:
		u.note(fmt.Sprintf("the server does not say what it has now: it answers HEAD with %s. The upload is not verified", said(head)))
		return nil
	case size != u.Size:
		return differs("the server has %d bytes of the %d that were sent", size, u.Size)
	}
	sums := sumsOf(answer)
	if len(sums) == 0 {
		return a.sample(ctx, at)
	}
	for _, s := range sums {
		digest := s.new()
		if _, err := io.Copy(digest, io.NewSectionReader(u.File, 0, int64(u.Size))); err != nil {
			return err
		}
		if !bytes.Equal(digest.Sum(nil), s.value) {
			return differs("the server has another file: its %s is %x, of what was sent %x", s.name, s.value, digest.Sum(nil))
		}
	}
	return nil
}

// sample compares some bytes. With ranges these are their beginnings: a server that rewrites the file for
// each range loses some of those that came together. Of a whole file they are the beginnings of its
// quarters: the server may have kept an old file of that size.
func (a *asker) sample(ctx context.Context, at *url.URL) error {
	u := a.upload
	parts, length := u.kept, rangeSample
	if len(parts) == 0 {
		length = quarterSample
		quarter := (u.Size + 3) / 4
		for offset := quantity.Bytes(0); offset < u.Size; offset += quarter {
			parts = append(parts, ranges.Range{Offset: offset, Length: min(quarter, u.Size-offset)})
		}
	}
	step := max(1, len(parts)/mostSamples)
	for i := 0; i < len(parts); i += step {
		part := parts[i]
		part.Length = min(part.Length, length)
		if isTold, err := a.compare(ctx, at, part); err != nil || !isTold {
			return err
		}
	}
	return nil
}

// compare requests a range, and fails if its bytes differ from the file. A server may send fewer bytes
// (RFC 9110 15.3.7). isTold says that some bytes came.
func (a *asker) compare(ctx context.Context, at *url.URL, part ranges.Range) (isTold bool, err error) {
	u := a.upload
	answer, err := a.ask(ctx, answerPatience, transport.Question{
		Method: http.MethodGet, Target: transport.Target{URL: at},
		Fields: map[string]string{"Range": transport.RangeHeader(part)},
	})
	if err != nil {
		return false, fmt.Errorf("the file is sent, but whether the server has it is unknown: %w", err)
	}
	told, size, err := answer.Part()
	came := min(part.Length, quantity.Bytes(len(answer.Body)))
	switch {
	case err != nil || told.Offset != part.Offset:
		return false, nil
	case answer.Code == http.StatusOK && came < part.Length: // The body of a 200 is the whole file.
		size = came
	case came == 0:
		u.note(fmt.Sprintf("the server sends no bytes at %d, though it answers %s. The upload is not verified", part.Offset, said(answer)))
		return false, nil
	}
	if size >= 0 && size != u.Size {
		return false, differs("the server has %d bytes of the %d that were sent", size, u.Size)
	}
	sent := make([]byte, came)
	if _, err := u.File.ReadAt(sent, int64(part.Offset)); err != nil && err != io.EOF {
		return false, err
	}
	if !bytes.HasPrefix(answer.Body, sent) {
		return false, differs("the server has other bytes at %d than those that were sent", part.Offset)
	}
	return true, nil
}

// note shows a message to the user.
func (u *upload) note(text string) {
	if u.Note != nil {
		u.Note(text)
	}
}

// sizeOf returns the size of the file by an answer, if that tells it.
func sizeOf(answer transport.Answer) (quantity.Bytes, bool) {
	_, size, err := answer.Part()
	return size, err == nil && size >= 0
}

// sum is a checksum of the whole file.
type sum struct {
	name  string
	new   func() hash.Hash
	value []byte
}

// algorithm is the algorithm of a checksum, by its names in Digest and Repr-Digest (RFC 3230, RFC 9530)
// and in OC-Checksum (ownCloud).
func algorithm(name string) (sum, bool) {
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "sha-256", "sha256":
		return sum{name: "SHA-256", new: sha256.New}, true
	case "sha-512":
		return sum{name: "SHA-512", new: sha512.New}, true
	case "sha", "sha1":
		return sum{name: "SHA-1", new: sha1.New}, true
	case "md5":
		return sum{name: "MD5", new: md5.New}, true
	case "adler32":
		return sum{name: "Adler-32", new: func() hash.Hash { return adler32.New() }}, true
	}
	return sum{}, false
}

// sumsOf returns the checksums of the whole file in an answer. It skips malformed ones.
func sumsOf(answer transport.Answer) (sums []sum) {
	header := answer.Header
	add := func(name, text string, decode func(string) ([]byte, error)) {
		s, known := algorithm(name)
		value, err := decode(text)
		if known && err == nil && len(value) == s.new().Size() {
			s.value = value
			sums = append(sums, s)
		}
	}
	inBase64 := base64.StdEncoding.DecodeString
	for _, field := range []string{"Repr-Digest", "Digest"} {
		for member := range strings.SplitSeq(strings.Join(header.Values(field), ","), ",") {
			name, text, _ := strings.Cut(member, "=")
			text, _, _ = strings.Cut(text, ";")
			add(name, strings.Trim(text, ": \t"), inBase64)
		}
	}
	for member := range strings.FieldsSeq(header.Get("OC-Checksum")) {
		name, text, _ := strings.Cut(member, ":")
		add(name, text, hex.DecodeString)
	}
	if answer.Code == http.StatusOK { // Else the checksum is of the part.
		add("md5", header.Get("Content-MD5"), inBase64)
	}
	add("sha256", header.Get("X-Amz-Checksum-Sha256"), inBase64)
	if etag := strings.Trim(header.Get("ETag"), `"`); isOfS3(header) {
		add("md5", etag, hex.DecodeString) // With "-PARTS" at its end the ETag has another form.
	}
	return sums
}

// isOfS3 reports whether an ETag in the form of an MD5 is one. On S3 it is, unless the client's own key
// encrypts the file.
func isOfS3(header http.Header) bool {
	encryption := header.Get("X-Amz-Server-Side-Encryption")
	return header.Get("X-Amz-Request-Id") != "" && (encryption == "" || encryption == "AES256") &&
		header.Get("X-Amz-Server-Side-Encryption-Customer-Algorithm") == ""
}
