package oddserver

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
)

// Uploads are the habits of the server with PUT. With these habits a path has the file until another
// one is uploaded, and GET is answered correctly.
var Uploads = []Habit{
	{Name: "put-replaces", Does: "keeps a range for the whole file", take: func(x *exchange, body []byte) {
		x.server.mu.Lock()
		x.server.stored[x.r.URL.Path] = body
		x.server.mu.Unlock()
		x.w.WriteHeader(http.StatusCreated)
	}},
	{Name: "put-none", Does: "refuses PUT", take: func(x *exchange, _ []byte) { x.refuse(http.StatusMethodNotAllowed) }},
}

// serveUpload answers a request under a habit of Uploads.
func (x *exchange) serveUpload(take func(*exchange, []byte)) {
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
		take(x, body)
	default:
		x.refuse(http.StatusMethodNotAllowed)
	}
}
