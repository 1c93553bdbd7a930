package progress

import (
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/tests/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// seen waits until the screen shows the words.
func seen(t *testing.T, screen *testkit.Text, words ...string) {
	t.Helper()
	for _, want := range words {
		testkit.Eventually(t, fmt.Sprintf("%q is shown", want), func() bool { return strings.Contains(screen.String(), want) })
	}
}

func TestBarsShowEveryLinkAndEnd(t *testing.T) {
	var screen testkit.Text
	b := New(&screen, []transfer.Link{{Name: "wifi"}, {Name: "lte"}})
	b.Record(0, &rundir.Size{Bytes: 10_000_000})
	b.Record(0, &rundir.Sample{Link: "wifi", Received: 2_500_000, Throughput: 80e6})
	seen(t, &screen, "wifi", "lte", "80.0 Mbit/s", "2.5 MB of 10.0 MB")
	b.Close()
	testkit.Holds(t, !strings.Contains(screen.String(), "earlier"), screen.String())
}

func TestBarsShowWhatIsThereAlready(t *testing.T) {
	for _, resumed := range []int64{6_000_000, 10_000_000} {
		var screen testkit.Text
		b := New(&screen, []transfer.Link{{Name: "wifi"}})
		b.Record(0, &rundir.Size{Bytes: 10_000_000, Resumed: resumed})
		seen(t, &screen, "earlier", fmt.Sprintf("%.1f MB of 10.0 MB", float64(resumed)/1e6))
		b.Close()
	}
}
