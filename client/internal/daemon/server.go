package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/linklab/linklab/client/internal/partfile"
	"github.com/linklab/linklab/client/internal/printable"
)

// The protocol is HTTP with JSON bodies. Every language and curl speak it, it has codes for errors,
// and a request can wait for its answer:
//
//	POST   /downloads            a Request in, the Download out (201)
//	GET    /downloads            all downloads: {"downloads": […]}
//	GET    /downloads/ID         one; with ?wait=true when it has ended
//	DELETE /downloads/ID         cancels it; the Download out when it has ended
//	GET    /links                the links' accounts: {"links": […]}
//
// An error is {"error": "…"} with 400 (the request is wrong), 404 (no such
// download), 409 (ended, or the file exists or is taken), or 500.

// maxRequest limits the body of a request in bytes.
const maxRequest = 64 << 10

// Handler serves the protocol.
func Handler(q *Queue) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /downloads", func(w http.ResponseWriter, r *http.Request) {
		var request Request
		body := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest))
		body.DisallowUnknownFields()
		if err := body.Decode(&request); err != nil {
			refuse(w, RequestError{fmt.Errorf("the body is not a request such as {\"url\": \"https://HOST/PATH\"}: %w", err)})
			return
		}
		d, err := q.Add(request)
		answer(w, http.StatusCreated, d, err)
	})
	mux.HandleFunc("GET /downloads", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]any{"downloads": q.List()}, nil)
	})
	mux.HandleFunc("GET /downloads/{id}", withID(func(w http.ResponseWriter, r *http.Request, id int) {
		get := q.Get
		if r.URL.Query().Get("wait") == "true" {
			get = func(id int) (Download, error) { return q.Wait(r.Context(), id) }
		}
		d, err := get(id)
		answer(w, http.StatusOK, d, err)
	}))
	mux.HandleFunc("DELETE /downloads/{id}", withID(func(w http.ResponseWriter, r *http.Request, id int) {
		err := q.Cancel(id)
		var d Download
		if err == nil {
			d, err = q.Wait(r.Context(), id)
		}
		answer(w, http.StatusOK, d, err)
	}))
	mux.HandleFunc("GET /links", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]any{"links": q.LinkStatus()}, nil)
	})
	return mux
}

func withID(handle func(http.ResponseWriter, *http.Request, int)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id, err := strconv.Atoi(r.PathValue("id"))
		if err != nil {
			refuse(w, RequestError{fmt.Errorf("%q is not the number of a download", r.PathValue("id"))})
			return
		}
		handle(w, r, id)
	}
}

func answer(w http.ResponseWriter, status int, value any, err error) {
	if err != nil {
		refuse(w, err)
		return
	}
	write(w, status, value)
}

func refuse(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	switch {
	case errors.As(err, new(RequestError)):
		status = http.StatusBadRequest
	case errors.Is(err, ErrUnknown):
		status = http.StatusNotFound
	case errors.Is(err, ErrEnded), errors.Is(err, ErrTaken), errors.Is(err, partfile.ErrExists):
		status = http.StatusConflict
	}
	write(w, status, map[string]string{"error": err.Error()})
}

func write(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// This fails only if the client is gone.
	_ = json.NewEncoder(printable.NewWriter(w)).Encode(value)
}

// Serve answers on the listener until ctx ends, and then ends waiting requests.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
