package oddserver

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
)

// Uploads are the habits of the server with PUT. With these habits a path has the file until another
// one is uploaded, and GET is answered correctly.
var Uploads = []Habit{
	{Name: "put-ranges", Does: "writes a range into the file (RFC 9110 14.5)", take: func(x *exchange, body []byte, first int, ranged bool) {
		if !ranged {
			x.store(body)
			return
		}
		x.server.mu.Lock()
		file := slices.Clone(x.server.stored[x.r.URL.Path])
		if missing := first + len(body) - len(file); missing > 0 {
			file = append(file, make([]byte, missing)...)
		}
		copy(file[first:], body)
		x.server.stored[x.r.URL.Path] = file
		x.server.mu.Unlock()
		x.w.WriteHeader(http.StatusCreated)
	}},
	{Name: "put-replaces", Does: "keeps a range for the whole file", take: func(x *exchange, body []byte, _ int, _ bool) { x.store(body) }},
	{Name: "put-400", Does: "refuses a range with 400 (RFC 9110 9.3.4)", take: refusePutRange(http.StatusBadRequest)},
	{Name: "put-403", Does: "refuses a range with 403", take: refusePutRange(http.StatusForbidden)},
	{Name: "put-501", Does: "refuses a range with 501", take: refusePutRange(http.StatusNotImplemented)},
	{Name: "put-ignores-range", Does: "says 204 to a range and stores nothing", take: func(x *exchange, body []byte, _ int, ranged bool) {
		if ranged {
			x.w.WriteHeader(http.StatusNoContent)
			return
		}
		x.store(body)
	}},
	{Name: "put-none", Does: "refuses PUT", take: func(x *exchange, _ []byte, _ int, _ bool) { x.refuse(http.StatusMethodNotAllowed) }},
	{Name: "put-cuts", Does: "says 201 and stores half of the file", take: func(x *exchange, body []byte, _ int, _ bool) { x.store(body[:len(body)/2]) }},
}

func refusePutRange(status int) func(*exchange, []byte, int, bool) {
	return func(x *exchange, body []byte, _ int, ranged bool) {
		if ranged {
			x.refuse(status)
			return
		}
		x.store(body)
	}
}

// store stores the body under the path.
func (x *exchange) store(body []byte) {
	x.server.mu.Lock()
	x.server.stored[x.r.URL.Path] = body
	x.server.mu.Unlock()
	x.w.WriteHeader(http.StatusCreated)
}

// serveUpload answers a request under a habit of Uploads.
func (x *exchange) serveUpload(take func(*exchange, []byte, int, bool)) {
	switch x.r.Method {
	case http.MethodGet, http.MethodHead:
		x.server.mu.Lock()
		if stored, ok := x.server.stored[x.r.URL.Path]; ok {
			x.content, x.etag = stored, fmt.Sprintf(`"%d"`, x.asked)
		}
		x.server.mu.Unlock()
		x.validators()
		http.ServeContent(x.w, x.r, "", x.modified, bytes.NewReader(x.content))
	case http.MethodPut:
		body, err := io.ReadAll(x.r.Body)
		if err != nil {
			return // An incomplete body is not stored.
		}
		var first, last, size int
		parts, _ := fmt.Sscanf(x.r.Header.Get("Content-Range"), "bytes %d-%d/%d", &first, &last, &size)
		take(x, body, first, parts == 3)
	default:
		x.refuse(http.StatusMethodNotAllowed)
	}
}
