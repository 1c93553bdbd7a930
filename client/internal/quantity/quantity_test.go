package quantity

import (
	"strings"
	"testing"
	"time"

	"github.com/linklab/linklab/client/tests/testkit"
)

func TestSize(t *testing.T) {
	for text, want := range map[string]Bytes{
		"1": 1, "500000": 500_000, "1000kB": 1_000_000, "1.5MB": 1_500_000,
		"64KiB": 65_536, "2gb": 2_000_000_000, "1 MiB": 1 << 20,
	} {
		var got Bytes
		if err := got.Set(text); err != nil || got != want {
			t.Errorf("%q is %d (%v), want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "kB", "0", "-1kB", "0.5", "1kbit", "1e30GB", "NaN", "1k B", "ten"} {
		var got Bytes
		if err := got.Set(text); err == nil || !strings.Contains(err.Error(), "allowed") {
			t.Errorf("%q is %d (%v), want an error that says what is allowed", text, got, err)
		}
	}
}

func TestSizeReadsWhatItPrints(t *testing.T) {
	for _, want := range []Bytes{1, 999, 1000, 65_536, 1_000_000} {
		var got Bytes
		if err := got.Set(want.String()); err != nil || got != want {
			t.Errorf("%d prints as %s, which is %d (%v)", want, want.String(), got, err)
		}
	}
}

func TestRatesAndTimes(t *testing.T) {
	testkit.Same(t, Bytes(1000).Per(100*time.Millisecond), 80_000)
	testkit.Same(t, Rate(80_000).Over(100*time.Millisecond), 1000)
}

func TestRate(t *testing.T) {
	for text, want := range map[string]float64{
		"8bit/s": 1, "80Mbit/s": 10e6, "80mbit": 10e6, "1.5Gbit/s": 187.5e6, "100 kbit/s": 12_500,
	} {
		got, err := ParseRate(text)
		testkit.Holds(t, err == nil && got.BytesPerSecond() == want, text, got.BytesPerSecond(), err, want)
	}
	for _, text := range []string{"", "80", "80MB/s", "Mbit/s", "0mbit", "-3mbit", "Infbit"} {
		if got, err := ParseRate(text); err == nil || !strings.Contains(err.Error(), "allowed") {
			t.Errorf("%q is %v (%v), want an error that says what is allowed", text, got, err)
		}
	}
}
