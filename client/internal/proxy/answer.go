package proxy

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/transport"
)

// Fields of an answer that describe its content, and no other part of the file:
// Content-Digest (RFC 9530 2) and Content-MD5 (RFC 2616 14.15). Repr-Digest (RFC 9530 3) and
// Digest (RFC 3230 4.3.2) describe the whole file, even in the answer to a range.
var ofContent = []string{"Content-Digest", "Content-Md5"}

// Signature fields. A signature covers the status and some other fields of an answer (RFC
// 9421 2).
var ofMessage = []string{"Signature", "Signature-Input"}

// answer turns the answer to the first request, which brings part of the resource, into the
// answer to the client, which brings whole.
func (w wanted) answer(response *http.Response, resource transport.Resource, part, whole ranges.Range) *http.Response {
	if w.explicit && part == whole {
		return response // The client gets the answer as it came.
	}
	answer := *response
	answer.ContentLength = int64(whole.Length)
	answer.Header = response.Header.Clone()
	// Trailers belong to the end of the first answer.
	answer.Trailer = nil
	for _, name := range ofMessage {
		answer.Header.Del(name)
	}
	if part != whole {
		for _, name := range ofContent {
			answer.Header.Del(name)
		}
	}
	answer.Header.Set("Content-Length", strconv.FormatInt(int64(whole.Length), 10))
	if w.explicit {
		answer.Header.Set("Content-Range", strings.Replace(transport.RangeHeader(whole), "=", " ", 1)+"/"+strconv.FormatInt(int64(resource.Size), 10))
		return &answer
	}
	answer.StatusCode, answer.Status = http.StatusOK, "200 OK"
	answer.Header.Del("Content-Range")
	answer.Header.Set("Accept-Ranges", "bytes")
	return &answer
}
