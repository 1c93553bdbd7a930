package progress

import (
	"bytes"
	"fmt"
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
	if strings.Contains(screen.String(), "earlier") {
		t.Errorf("nothing is resumed in %q", screen.String())
	}
}

func TestBarsShowWhatIsThereAlready(t *testing.T) {
	for _, resumed := range []int64{6_000_000, 10_000_000} {
		var screen bytes.Buffer
		b := New(&screen, []download.Link{{Name: "wifi"}})
		b.Record(0, &rundir.Size{Bytes: 10_000_000, Resumed: resumed})
		time.Sleep(5 * rundir.SampleInterval)
		b.Close()
		want := fmt.Sprintf("%.1f MB of 10.0 MB", float64(resumed)/1e6)
		if !strings.Contains(screen.String(), "earlier") || !strings.Contains(screen.String(), want) {
			t.Errorf("%q of an earlier call is not shown in %q", want, screen.String())
		}
	}
}
