package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/racedetector"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/tests/oddserver"
	"github.com/linklab/linklab/client/tests/testkit"
)

// at returns a dial to an address of loopback for any name.
func at(address string) func(context.Context, string) (link.Socket, error) {
	return func(ctx context.Context, to string) (link.Socket, error) {
		host, port, _ := net.SplitHostPort(to)
		if host == "example.com" {
			to = net.JoinHostPort(address, port)
		}
		return link.Dialer{Device: "lo"}.Dial(ctx, to)
	}
}

// Whatever an origin does with ranges, a client without ranges gets the file, and a client with
// ranges gets the right bytes.
func TestOddOrigins(t *testing.T) {
	content := file[:3_000_000]
	server := oddserver.New(content, oddserver.WithRate(8_000_000))
	var wg sync.WaitGroup
	room := make(chan struct{}, 48)
	part := 0
	for _, protocol := range []string{oddserver.HTTP2, oddserver.HTTP1} {
		origin, err := server.Start(protocol, "127.0.0.1", "127.0.0.2", "127.0.0.3")
		testkit.OK(t, err)
		t.Cleanup(origin.Close)
		base := "https://example.com" + origin.URL[strings.LastIndex(origin.URL, ":"):] + "/"
		for name, scheduler := range map[string]schedule.Scheduler{"adaptive": schedule.Adaptive{}, "alg3": schedule.Alg3{FirstRequests: 5e5, Padding: 0.1}} {
			address, _ := start(t, nil, func(o *Options) {
				roots := x509.NewCertPool()
				roots.AddCert(origin.Certificate())
				o.Engine.TLS = &tls.Config{RootCAs: roots}
				o.Engine.Scheduler = scheduler
				if name == "adaptive" {
					o.Engine.Connections = &transfer.Connections{Most: 4}
				}
				o.Engine.Links[0].Dial, o.Engine.Links[1].Dial = at("127.0.0.2"), at("127.0.0.3")
				o.Streams = 64
			})
			client, plain := direct(t), origin.Client()
			part++
			for i, habit := range oddserver.Habits {
				// With the race detector each habit is tried with one of the four proxies.
				if racedetector.On && i%4 != part%4 {
					continue
				}
				for _, asked := range []string{"", "bytes=1000000-", "bytes=1000000-2999999", "bytes=100-199"} {
					if asked != "" && name == "alg3" && protocol == oddserver.HTTP1 {
						continue
					}
					wg.Go(func() {
						room <- struct{}{}
						defer func() { <-room }()
						path := habit.Name + "/" + strings.ReplaceAll(name+asked+protocol, "/", "")
						header, body, err := fetch(client, "http://"+address+"/"+base+path, asked)
						if asked == "" {
							if err != nil && habit.Differs {
								return // The answer began with one file, and the server has another one.
							}
							testkit.Holds(t, err == nil && header.StatusCode == http.StatusOK && server.Is(habit, body), path, status(header), err, len(body))
							return
						}
						if err != nil && habit.Differs {
							return
						}
						usual, _, _ := fetch(plain, origin.URL+"/"+path+"-directly", asked)
						if err != nil || header.StatusCode != usual.StatusCode && header.StatusCode/100 != 2 {
							t.Errorf("%s: %v, %v, %d bytes; the origin says %s", path, status(header), err, len(body), usual.Status)
							return
						}
						var first, last int
						said := header.Header.Get("Content-Range")
						_, err = fmt.Sscanf(strings.ToLower(said), "bytes %d-%d/", &first, &last)
						switch {
						case habit.Differs, header.StatusCode/100 != 2:
						case strings.HasPrefix(header.Header.Get("Content-Type"), "multipart/"):
							testkit.Holds(t, bytes.Contains(body, content[1_000_000:1_000_100]) || asked[6] != '0', path, len(body))
						case said != "" && (err != nil || !bytes.Equal(body, content[first:last+1])),
							said == "" && !bytes.Equal(body, content):
							t.Errorf("%s: %s, Content-Range %q, %d bytes", path, header.Status, said, len(body))
						}
					})
				}
			}
		}
	}
	wg.Wait()
}

// fetch gets a URL, or a range of it.
func fetch(client *http.Client, url, asked string) (*http.Response, []byte, error) {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return nil, nil, err
	}
	if asked != "" {
		request.Header.Set("Range", asked)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response, body, err
}

func status(r *http.Response) string {
	if r == nil {
		return "no answer"
	}
	return r.Status
}

// If the connection fails in the middle of a whole file, all links finish the file.
func TestAnInterruptedWholeAnswerIsResumed(t *testing.T) {
	for name, first := range map[string]int{"after a refusal": http.StatusServiceUnavailable, "in place of a range": http.StatusOK} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			origin := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				n := asked.Add(1)
				if n == 1 && first != http.StatusOK {
					w.WriteHeader(first)
					return
				}
				w.Header().Set("ETag", `"1"`)
				if n > 2 || n == 2 && first == http.StatusOK {
					http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(file))
					return
				}
				w.Header().Set("Content-Length", strconv.Itoa(len(file)))
				w.Write(file[:100_000])
				panic(http.ErrAbortHandler)
			}))
			defer origin.Close()
			address, _ := start(t, nil, func(o *Options) {
				roots := x509.NewCertPool()
				roots.AddCert(origin.Certificate())
				o.Engine.TLS = &tls.Config{RootCAs: roots}
			})
			header, body, err := fetch(direct(t), "http://"+address+"/"+origin.URL+"/file", "")
			testkit.Holds(t, err == nil && header.StatusCode == http.StatusOK && bytes.Equal(body, file), status(header), err, len(body), len(file))
		})
	}
}

// The proxy waits about once for a server that needs long for each answer.
func TestASlowServerIsAskedAhead(t *testing.T) {
	t.Parallel()
	const wait = 4 * time.Second
	for _, size := range []int{firstRange + 1, len(file)} {
		o := serve(t, true, func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-time.After(wait):
			case <-r.Context().Done():
				return
			}
			w.Header().Set("ETag", `"1"`)
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(file[:size]))
		})
		address, _ := start(t, o, func(o *Options) { o.Streams = 1 })
		for range 2 {
			begun := time.Now()
			response, got := get(t, direct(t), "http://"+address+"/"+o.URL+"/f.bin")
			if took := time.Since(begun); response.StatusCode != 200 || !bytes.Equal(got, file[:size]) || took > 2*wait {
				t.Errorf("%s, %d of %d bytes after %v", response.Status, len(got), size, took)
			}
		}
	}
}
