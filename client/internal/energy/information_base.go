package energy

import (
	"math"

	"github.com/linklab/linklab/client/internal/quantity"
)

// Choice is which of Wi-Fi and LTE cost least per byte.
type Choice int

const (
	WifiOnly Choice = iota
	LTEOnly
	Both
)

// Thresholds are a row of eMPTCP's Energy Information Base (eMPTCP 3.3), for
// one rate of LTE: LTE alone costs least per byte below LTEOnlyBelow of Wi-Fi,
// Wi-Fi alone from WifiOnlyFrom on (infinite: never), both together between.
type Thresholds struct {
	LTEOnlyBelow, WifiOnlyFrom quantity.Rate
}

// Thresholds is the row for a rate of LTE, of a model that knows both kinds.
// Both borders are where two links together cost as much per byte as one.
func (m *Model) Thresholds(lte quantity.Rate) Thresholds {
	wifi, cellular := m.Radios[Wifi], m.Radios[LTE]
	// From where on Wi-Fi adds less per megabit than LTE alone costs.
	alone := m.PowerMW(Load{cellular, lte}) / lte.MegabitsPerSecond()
	// Until where Wi-Fi alone costs more than LTE adds for its own megabits.
	added := (m.BothMW+cellular.ActiveMW)/lte.MegabitsPerSecond() + cellular.DownMJ
	return Thresholds{
		LTEOnlyBelow: border(m.BothMW+wifi.ActiveMW, alone-wifi.DownMJ),
		WifiOnlyFrom: border(m.DeviceMW()+m.SharedMW+wifi.ActiveMW, added-wifi.DownMJ),
	}
}

// border is the rate at which a power, in mW, costs so much per megabit, in mJ.
func border(powerMW, marginMJ float64) quantity.Rate {
	if marginMJ <= 0 {
		return quantity.Rate(math.Inf(1))
	}
	return quantity.Rate(powerMW / marginMJ * 1e6)
}

// Hysteresis is the part of a border by which a rate must be beyond it to change the
// choice (eMPTCP 3.4).
const Hysteresis = 0.1

// Next is what to use at a rate of Wi-Fi after what is used now.
func (t Thresholds) Next(now Choice, wifi quantity.Rate) Choice {
	below, from := t.LTEOnlyBelow, t.WifiOnlyFrom
	// Either border is harder to cross from where one is.
	if now == LTEOnly {
		below *= 1 + Hysteresis
	} else {
		below *= 1 - Hysteresis
	}
	if now == WifiOnly {
		from *= 1 - Hysteresis
	} else {
		from *= 1 + Hysteresis
	}
	switch {
	case wifi >= from:
		return WifiOnly
	case wifi < below:
		return LTEOnly
	}
	return Both
}
