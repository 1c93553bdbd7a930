package proxy

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/transport"
)

// Fields of an answer that hold for its content, and so for no other part of
// the file: Content-Digest (RFC 9530 2) and Content-MD5 (RFC 2616 14.15).
// Repr-Digest (RFC 9530 3) and Digest (RFC 3230 4.3.2) are of the whole file
// in the answer to a range as well.
var ofContent = []string{"Content-Digest", "Content-Md5"}

// Fields that hold for an answer with its status and its other fields, of which
// a signature covers some (RFC 9421 2).
var ofMessage = []string{"Signature", "Signature-Input"}

// answer turns the answer to the first request, which brings part of the
// resource, into that to the client's, which is to bring whole.
func (w wanted) answer(response *http.Response, resource transport.Resource, part, whole ranges.Range) *http.Response {
	if w.explicit && part == whole {
		return response // just as the client would have got it
	}
	answer := *response
	answer.ContentLength = int64(whole.Length)
	answer.Header = response.Header.Clone()
	// They end the first answer, not this one.
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
