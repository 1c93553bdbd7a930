package download

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/racedetector"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/transfer"
)

// byChance has a test download files of any size from drawn servers, over any protocol and number of connections.
func byChance(t *testing.T, salt uint64, test func(t *testing.T, draw func(int) int, download func(http.HandlerFunc) (rundir.Summary, error))) {
	t.Helper()
	for seed := range servers("LINKLAB_CHANCE_SERVERS", racedetector.Part(40)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			draw := drawing(seed, salt)
			whole := file
			defer func() { file = whole }()
			file = file[:1+draw([]int{1000, 200_000, len(file)}[draw(3)])]
			test(t, draw, func(handler http.HandlerFunc) (rundir.Summary, error) {
				summary, _, err := try(t, handler, func(o *Options, _ *simNet) {
					o.Rescue, o.GiveUp, o.Scheduler = true, 3*time.Minute, rescuers["adaptive"]
					o.Connections = &transfer.Connections{Most: 1 + draw(4)}
					if draw(2) == 0 {
						overHTTP1(o)
					}
				})
				return summary, err
			})
		})
	}
}

// Whatever a server answers from request to request, the download ends: a part of its answers is right. Only that it
// costs too much may end it before.
func TestAnswersByChance(t *testing.T) {
	byChance(t, 61, func(t *testing.T, draw func(int) int, download func(http.HandlerFunc) (rundir.Summary, error)) {
		right, unranged := 1+draw(20), draw(10)
		summary, err := download(func(w http.ResponseWriter, r *http.Request) {
			hang := func() {
				isAwaited(r, 40*time.Second)
				panic(http.ErrAbortHandler)
			}
			if draw(20) < unranged {
				r.Header.Del("Range")
			}
			if draw(20) < right {
				content(w, r)
				return
			}
			switch draw(8) {
			case 0:
				content(&slowBody{w}, r)
			case 1:
				w.Header().Set("Connection", "close")
				content(w, r)
			case 2:
				content(&shortBody{ResponseWriter: w, left: 1 + draw(1_000_000)}, r)
				panic(http.ErrAbortHandler)
			case 3:
				hang()
			case 4:
				content(&shortBody{ResponseWriter: w, left: 1 + draw(1_000_000)}, r)
				w.(http.Flusher).Flush()
				hang()
			case 5:
				http.Error(w, "busy", http.StatusServiceUnavailable)
			case 6:
				w.Header().Set("Connection", "close")
				content(&lateBody{ResponseWriter: w, late: time.Duration(draw(900)) * time.Millisecond}, r)
			case 7:
				content(&lateBody{ResponseWriter: w, late: time.Duration(draw(900)) * time.Millisecond}, r)
			}
		})
		if err != nil && !strings.Contains(err.Error(), "again and again") {
			t.Errorf("after %v s: %v (%d of 20 right, %d whole)", seconds(summary.Download), err, right, unranged)
		}
	})
}

// A server that never answers some of its requests holds up none of the bytes that others bring.
func TestRequestsWithoutAnAnswerAreDuplicated(t *testing.T) {
	byChance(t, 62, func(t *testing.T, draw func(int) int, download func(http.HandlerFunc) (rundir.Summary, error)) {
		hangs := 1 + draw(3)
		summary, err := download(func(w http.ResponseWriter, r *http.Request) {
			if draw(20) < hangs {
				isAwaited(r, time.Hour)
				panic(http.ErrAbortHandler)
			}
			content(w, r)
		})
		if took := seconds(summary.Download); err != nil || took > 60 {
			t.Errorf("%d bytes took %v s, %d of 20 requests without an answer: %v", len(file), took, hangs, err)
		}
	})
}
