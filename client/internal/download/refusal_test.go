package download

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/tests/testkit"
)

// refusers are what servers answer to more requests at a time than they take.
var refusers = map[string]http.HandlerFunc{
	"403":             answering(http.StatusForbidden, ""),
	"429 for an hour": answering(http.StatusTooManyRequests, "3600"),
}

// A server that refuses more requests at a time than it takes answers those that it takes: they bring the file.
func TestAServerThatTakesFewRequestsAtATime(t *testing.T) {
	for name, refuse := range refusers {
		for _, algorithm := range []string{"adaptive", "alg3"} {
			for _, most := range []int32{1, 2, 4} {
				t.Run(name+", "+algorithm, func(t *testing.T) {
					var now atomic.Int32
					handler := func(w http.ResponseWriter, r *http.Request) {
						defer now.Add(-1)
						if now.Add(1) > most {
							refuse(w, r)
							return
						}
						slowly(w, r)
					}
					summary, _ := rescued(t, schedulers[algorithm], http.HandlerFunc(handler), "", func(o *Options, _ *network) {
						if o.Connections != nil {
							o.Connections.Most = 6
						}
					})
					// The server sends 200 kB/s for each request.
					least := 6 / (0.2 * float64(most))
					within(t, "download time", seconds(summary.Download), 0.9*least, 2*least)
				})
			}
		}
	}
}

// A server that refuses all is believed, however many connections there are.
func TestAServerThatRefusesAllIsBelieved(t *testing.T) {
	for name, refuse := range refusers {
		for _, after := range []int32{0, 20} {
			t.Run(name, func(t *testing.T) {
				var count atomic.Int32
				handler := func(w http.ResponseWriter, r *http.Request) {
					if count.Add(1) > after {
						refuse(w, r)
						return
					}
					content(w, r)
				}
				summary, events := rescued(t, schedulers["adaptive"], http.HandlerFunc(handler), "the server answers", func(o *Options, _ *network) {
					o.Connections.Most = 6
				})
				within(t, "time until the failure", seconds(summary.Download), 0, 3)
				testkit.Holds(t, len(of[*rundir.Request](events)) <= 60, "too many requests")
			})
		}
	}
}

// A redirect is no failed answer: the account of a download that was redirected still allows what it does
// while no answer fails.
func TestARedirectIsNoFailure(t *testing.T) {
	balance := new(transfer.Balance)
	rescued(t, schedulers["adaptive"], moved("/elsewhere", http.StatusFound), "", func(o *Options, _ *network) { o.Balance = balance })
	testkit.Holds(t, !balance.MayEnd(), "the redirects count as failures")
}
