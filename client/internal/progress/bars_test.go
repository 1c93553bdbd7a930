package progress

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/linklab/linklab/client/internal/download"
	"github.com/linklab/linklab/client/internal/rundir"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestBarsShowEveryLinkAndEnd(t *testing.T) {
	var screen bytes.Buffer
	b := New(&screen, []download.Link{{Name: "wifi"}, {Name: "lte"}})
	b.Record(0, &rundir.Size{Bytes: 10_000_000})
	b.Record(0, &rundir.Sample{Link: "wifi", Received: 2_500_000, Throughput: 80e6})
	time.Sleep(5 * rundir.SampleInterval)
	b.Close()
	for _, want := range []string{"wifi", "lte", "80.0 Mbit/s", "2.5 MB of 10.0 MB"} {
		if !strings.Contains(screen.String(), want) {
			t.Errorf("%q is not shown in %q", want, screen.String())
		}
	}
}
