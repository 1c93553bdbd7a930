package energy

import (
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/tests/testkit"
)

var update = flag.Bool("update", false, "write the golden file anew")

// golden is a row of the file that linklab's information_base_test.py reads,
// too. A threshold of null is never reached.
type golden struct {
	Model        string   `json:"model"`
	WifiBps      float64  `json:"wifi_bps"`
	LTEBps       float64  `json:"lte_bps"`
	PowerWifiMW  float64  `json:"power_wifi_mw"`
	PowerLTEMW   float64  `json:"power_lte_mw"`
	PowerBothMW  float64  `json:"power_both_mw"`
	BothJPerByte float64  `json:"both_j_per_byte"`
	LTEOnlyBelow *float64 `json:"lte_only_below_bps"`
	WifiOnlyFrom *float64 `json:"wifi_only_from_bps"`
	PromotionJ   float64  `json:"lte_promotion_j"`
	TailJ        float64  `json:"lte_tail_j"`
	TailTimeS    float64  `json:"lte_tail_s"`
}

func finite(r quantity.Rate) *float64 {
	f := float64(r)
	if math.IsInf(f, 1) {
		return nil
	}
	return &f
}

func TestTheNumbersAreLinklabs(t *testing.T) {
	files, err := filepath.Glob(models + "/*.yaml")
	testkit.OK(t, err)
	var rows []golden
	for _, file := range files {
		m, err := Read(file)
		testkit.OK(t, err)
		for _, rates := range [][2]quantity.Rate{{1e6, 0.5e6}, {10e6, 2e6}, {0.3e6, 8e6}, {80e6, 60e6}} {
			wifi, lte := Load{m.Radios[Wifi], rates[0]}, Load{m.Radios[LTE], rates[1]}
			thresholds := m.Thresholds(rates[1])
			rows = append(rows, golden{
				Model: m.Name, WifiBps: float64(rates[0]), LTEBps: float64(rates[1]),
				PowerWifiMW: m.PowerMW(wifi), PowerLTEMW: m.PowerMW(lte), PowerBothMW: m.PowerMW(wifi, lte),
				BothJPerByte: joulesPerByte(m, wifi, lte),
				LTEOnlyBelow: finite(thresholds.LTEOnlyBelow), WifiOnlyFrom: finite(thresholds.WifiOnlyFrom),
				PromotionJ: m.Radios[LTE].PromotionJoules(),
				TailJ:      m.Radios[LTE].TailJoules(time.Hour),
				TailTimeS:  m.Radios[LTE].TailTime().Seconds(),
			})
		}
	}
	got, err := json.MarshalIndent(rows, "", "  ")
	testkit.OK(t, err)
	got = append(got, '\n')
	const file = "testdata/information_base.json"
	if *update {
		testkit.OK(t, os.WriteFile(file, got, 0o644))
	}
	if want, err := os.ReadFile(file); err != nil || string(got) != string(want) {
		t.Errorf("%s differs (%v): go test ./internal/energy -update writes it", file, err)
	}
}

// eMPTCP table 2, Mbit/s: LTE only below, Wi-Fi only from. The first value is
// no share of LTE's rate like the others.
func TestThePublishedTableComesOut(t *testing.T) {
	m := read(t, "galaxy-s3")
	for lte, want := range map[quantity.Rate][2]float64{1e6: {0.134, 0.502}, 1.5e6: {0.209, 0.803}, 2e6: {0.304, 1.070}} {
		got := m.Thresholds(lte)
		if below := got.LTEOnlyBelow.MegabitsPerSecond(); math.Abs(below/want[0]-1) > 0.13 {
			t.Errorf("LTE only below %g Mbit/s at %g, published is %g", below, lte.MegabitsPerSecond(), want[0])
		}
		if from := got.WifiOnlyFrom.MegabitsPerSecond(); math.Abs(from/want[1]-1) > 0.15 {
			t.Errorf("Wi-Fi only from %g Mbit/s at %g, published is %g", from, lte.MegabitsPerSecond(), want[1])
		}
	}
}

// The example of eMPTCP 3.4: with both it takes .552 Mbit/s to go on with
// Wi-Fi alone, and from there .452 to go back.
func TestHysteresis(t *testing.T) {
	row := Thresholds{LTEOnlyBelow: 0.134e6, WifiOnlyFrom: 0.502e6}
	for _, test := range []struct {
		now  Choice
		wifi quantity.Rate
		want Choice
	}{
		{Both, 0.551e6, Both}, {Both, 0.553e6, WifiOnly},
		{WifiOnly, 0.452e6, WifiOnly}, {WifiOnly, 0.451e6, Both},
		{Both, 0.121e6, Both}, {Both, 0.120e6, LTEOnly},
		{LTEOnly, 0.147e6, LTEOnly}, {LTEOnly, 0.148e6, Both},
		{LTEOnly, 0.6e6, WifiOnly}, {WifiOnly, 0, LTEOnly},
	} {
		testkit.Same(t, row.Next(test.now, test.wifi), test.want, test.now, test.wifi)
	}
}

func TestTailsAndPromotions(t *testing.T) {
	r := Radio{IdleMW: 100, Promotion: State{2000, 260 * time.Millisecond}, Tail: []State{{1100, 2 * time.Second}, {600, 4 * time.Second}}}
	if got := r.PromotionJoules(); math.Abs(got-0.52) > 1e-12 {
		t.Errorf("a promotion costs %g J, want .52", got)
	}
	for after, want := range map[time.Duration]float64{-1: 0, 0: 0, time.Second: 1, 3 * time.Second: 2.5, time.Minute: 4} {
		if got := r.TailJoules(after); math.Abs(got-want) > 1e-12 {
			t.Errorf("a tail of %v costs %g J, want %g", after, got, want)
		}
	}
}

func TestWhereCostsAreEqual(t *testing.T) {
	for _, name := range []string{"galaxy-s3", "galaxy-s7", "nexus-5", "galaxy-s2-hd-lte"} {
		m := read(t, name)
		lte := Load{m.Radios[LTE], 8e6}
		row := m.Thresholds(lte.Rate)
		for _, border := range []struct {
			at    quantity.Rate
			alone func(wifi Load) float64
		}{
			{row.LTEOnlyBelow, func(Load) float64 { return joulesPerByte(m, lte) }},
			{row.WifiOnlyFrom, func(wifi Load) float64 { return joulesPerByte(m, wifi) }},
		} {
			wifi := Load{m.Radios[Wifi], border.at}
			if both, alone := joulesPerByte(m, wifi, lte), border.alone(wifi); math.Abs(both/alone-1) > 1e-9 {
				t.Errorf("%s: at %g bit/s both cost %g J/B, one alone %g", name, border.at, both, alone)
			}
		}
	}
}

func TestAllocations(t *testing.T) {
	m := read(t, "galaxy-s3")
	wifi, lte := Load{m.Radios[Wifi], 1e6}, Load{m.Radios[LTE], 8e6}
	if n := testing.AllocsPerRun(100, func() { joulesPerByte(m, wifi, lte); m.Thresholds(lte.Rate) }); n != 0 {
		t.Errorf("%g allocations", n)
	}
}

// joulesPerByte is what a byte of a long download costs over these links
// together. It is infinite if none brings anything.
func joulesPerByte(m *Model, loads ...Load) float64 {
	var sum quantity.Rate
	for _, l := range loads {
		sum += l.Rate
	}
	return m.PowerMW(loads...) * 1e-3 / sum.BytesPerSecond()
}

// Each active link after the first counts once more.
func TestBothCountsForEachFurtherLink(t *testing.T) {
	m := &Model{BaseMW: 1, SharedMW: 10, BothMW: 100}
	radio := &Radio{ActiveMW: 1000}
	var loads []Load
	for links, want := range []float64{1, 1011, 2111, 3211, 4311} {
		testkit.Same(t, m.PowerMW(loads...), want, links)
		loads = append(loads, Load{Radio: radio})
	}
}
