package download

import (
	"net/http"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/rundir"
)

// overHTTP1 is for servers without HTTP/2.
func overHTTP1(o *Options) {
	o.TLS = o.TLS.Clone()
	o.TLS.NextProtos = []string{"http/1.1"}
}

func TestLinkIsLostForGoodOverHTTP1(t *testing.T) {
	for name, s := range rescuers {
		for fault, reset := range map[string]bool{"nothing passes": false, "reset": true} {
			t.Run(name+", "+fault, func(t *testing.T) {
				t.Parallel()
				summary, events := rescued(t, s, http.HandlerFunc(content), "", func(o *Options, n *network) {
					overHTTP1(o)
					time.AfterFunc(200*time.Millisecond, func() {
						n.wifi.set(0)
						if reset {
							n.wifi.reset()
						}
					})
				})
				within(t, "download time", seconds(summary.Download), 0.45, 1.5*slack(name))
				if n := len(of[*rundir.Request](events)); n > 60 {
					t.Errorf("%d requests", n)
				}
			})
		}
	}
}

func TestAllLinksAreGoneForAWhileOverHTTP1(t *testing.T) {
	summary, events := rescued(t, schedulers["adaptive"], http.HandlerFunc(content), "", func(o *Options, n *network) {
		overHTTP1(o)
		time.AfterFunc(200*time.Millisecond, func() { n.wifi.set(0); n.lte.set(0); n.wifi.reset(); n.lte.reset() })
		time.AfterFunc(30*time.Second, func() { n.lte.set(1) })
	})
	within(t, "download time", seconds(summary.Download), 30.5, 39)
	if n := len(of[*rundir.Request](events)); n > 60 {
		t.Errorf("%d requests", n)
	}
}

func TestBackOffOverHTTP1(t *testing.T) {
	attempts := 0
	rescued(t, schedulers["adaptive"], http.HandlerFunc(content), "nothing arrived", func(o *Options, n *network) {
		overHTTP1(o)
		o.GiveUp = 30 * time.Second
		time.AfterFunc(200*time.Millisecond, func() { n.wifi.set(0); n.lte.set(0); n.wifi.reset(); n.lte.reset() })
		time.AfterFunc(30*time.Second, func() { attempts = n.wifi.dialled() + n.lte.dialled() })
	})
	if attempts < 12 || attempts > 30 {
		t.Errorf("%d attempts to connect in 30 s", attempts)
	}
}
