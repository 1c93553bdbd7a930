package storm

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/linklab/linklab/client/internal/download"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/schedule"
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
				n.become(failures["closes at once"])
				time.Sleep(time.Minute)
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
			found, _ := schedule.Find("single")
			begun := time.Now()
			_, err := upload.Run(ctx, upload.Options{
				Ranged: true,
				URL:    &url.URL{Scheme: "https", Host: "server", Path: "/file"}, File: &noFile{}, Size: 1 << 24,
				TLS: &tls.Config{RootCAs: authority}, Links: n.links()[:1], Scheduler: found.Scheduler(schedule.Parameters{}),
				Overlap: 0.6, Window: time.Second, GiveUp: 5 * time.Minute, LowestRate: lowest,
			})
			if took := time.Since(begun); lowest > 0 && (took > 11*time.Minute || !strings.Contains(err.Error(), "--lowest-rate")) || lowest == 0 && took < time.Hour {
				t.Errorf("%v: after %v: %v", lowest, took, err)
			}
			n.become(failures["closes at once"])
			time.Sleep(time.Minute)
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
				_, err := upload.Run(t.Context(), upload.Options{
					Ranged: true, URL: o.URL, File: &noFile{}, Size: 3_000_000, TLS: o.TLS, Links: o.Links, Scheduler: o.Scheduler,
					Overlap: o.Overlap, Window: o.Window, Rescue: true, Connections: o.Connections, GiveUp: o.GiveUp,
				})
				if took := time.Since(begun); err != nil || took > 30*time.Second {
					t.Errorf("after %v: %v", took, err)
				} else {
					t.Logf("%v, %d bytes, %d connections", took, n.sent.Load(), len(n.accepted))
				}
				n.become(failures["closes at once"])
				time.Sleep(time.Minute)
			})
		})
	}
}
