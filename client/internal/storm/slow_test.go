package storm

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/linklab/linklab/client/internal/download"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/upload"
)

// drips serves the file, and accepts uploads, at so many bytes a second.
func drips(protocol string, each int) func(*end) {
	return handles([]string{protocol}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		http.ServeContent(drip{w, each}, r, "", time.Time{}, &zeros{})
	})
}

type drip struct {
	http.ResponseWriter
	each int
}

func (d drip) Write(p []byte) (n int, err error) {
	for err == nil && n < len(p) {
		time.Sleep(time.Second)
		var m int
		m, err = d.ResponseWriter.Write(p[n:min(len(p), n+d.each)])
		d.ResponseWriter.(http.Flusher).Flush()
		n += m
	}
	return n, err
}

// A server that sends one byte a second ends a download. A slow server does not.
func TestALeastRate(t *testing.T) {
	const hour = time.Hour
	for _, test := range []struct {
		name, protocol, algorithm string
		most, each                int
		lowest                    quantity.Rate
		ends                      bool
	}{
		{"a byte a second", "h2", "adaptive", 16, 1, 200, true},
		{"a byte a second over HTTP/1.1", "http/1.1", "single", 0, 1, 200, true},
		{"a byte a second, without a least rate", "h2", "single", 0, 1, 0, false},
		{"1 kbit/s", "h2", "single", 0, 125, 200, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(drips(test.protocol, test.each))
				ctx, cancel := context.WithTimeout(t.Context(), hour)
				defer cancel()
				o := options(n, test.algorithm, true, test.most)
				o.LowestRate = test.lowest
				begun := time.Now()
				_, err := download.Run(ctx, o)
				took := time.Since(begun)
				switch {
				case test.ends && (took > 2*o.GiveUp+time.Minute || !strings.Contains(err.Error(), "--lowest-rate")):
					t.Errorf("after %v: %v", took, err)
				case !test.ends && took < hour:
					t.Errorf("it ends after %v: %v", took, err)
				}
				n.end()
			})
		})
	}
}

// A server that accepts one byte a second ends an upload.
func TestALeastRateOfUploads(t *testing.T) {
	for _, lowest := range []quantity.Rate{200, 0} {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork(func(e *end) {
				c := secured(e, "http/1.1")
				piece := make([]byte, 1)
				for _, err := c.Read(piece); err == nil; _, err = c.Read(piece) {
					e.slow = true
				}
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			o := options(n, "single", false, 0)
			o.LowestRate = lowest
			begun := time.Now()
			_, err := upload.Run(ctx, toUpload(o, 1<<24))
			if took := time.Since(begun); lowest > 0 && (took > 11*time.Minute || !strings.Contains(err.Error(), "--lowest-rate")) || lowest == 0 && took < time.Hour {
				t.Errorf("%v: after %v: %v", lowest, took, err)
			}
			n.end()
		})
	}
}

// A server gets the file though it answers each range late: the ranges that wait for their turn over
// HTTP/1.1 do not make a connection silent.
func TestAServerThatAnswersUploadsLate(t *testing.T) {
	for _, test := range []struct {
		algorithm string
		most      int
	}{{"adaptive", 64}, {"alg3", 0}} {
		t.Run(test.algorithm, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(handles([]string{"http/1.1"}, func(w http.ResponseWriter, r *http.Request) {
					io.Copy(io.Discard, r.Body)
					time.Sleep(3 * time.Second)
					w.WriteHeader(http.StatusCreated)
				}))
				o := options(n, test.algorithm, true, test.most)
				begun := time.Now()
				_, err := upload.Run(t.Context(), toUpload(o, 3_000_000))
				if took := time.Since(begun); err != nil || took > 30*time.Second {
					t.Errorf("after %v: %v", took, err)
				} else {
					t.Logf("%v, %d bytes, %d connections", took, n.sent.Load(), len(n.accepted))
				}
				n.end()
			})
		})
	}
}
