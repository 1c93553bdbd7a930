// Package energy says what a device draws while its links carry, wait and
// sleep, and which of its links cost least per byte.
//
// The models are linklab's: profiles/energy, and energy.yaml in a run
// directory. Both programs compute the same from them
// (testdata/information_base.json holds them together). It is pure but for
// Read.
package energy

import (
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
)

// Model is a device. It always draws BaseMW and PhoneMW. While links are active
// it also draws SharedMW, BothMW for each link beyond the first (below 0 where
// links share), and what each radio draws; all in mW. linklab counts PhoneMW
// until the radios sleep, BaseMW until the last byte.
type Model struct {
	Name                              string
	BaseMW, PhoneMW, SharedMW, BothMW float64
	// Radios has what a link of the kind draws; all of a kind are alike.
	Radios map[Kind]*Radio
}

// Radio is what a link draws: ActiveMW while it carries anything, and on top
// of that DownMJ for each megabit that comes and UpMJ for each that goes (a
// power of 1 mW per Mbit/s is 1 mJ per Mbit).
type Radio struct {
	ActiveMW, DownMJ, UpMJ, IdleMW float64
	// Promotion is what it takes to wake the radio before its first packet,
	// and Tail what follows its last one.
	Promotion State
	Tail      []State
}

// State is a power for a time.
type State struct {
	PowerMW float64
	Time    time.Duration
}

// Joules is what the state costs if it lasts no longer than that.
func (s State) Joules(most time.Duration) float64 {
	return s.PowerMW * 1e-3 * max(0, min(s.Time, most)).Seconds()
}

// PromotionJoules is what it costs to wake the radio.
func (r *Radio) PromotionJoules() float64 { return r.Promotion.Joules(r.Promotion.Time) }

// TailJoules is what the radio draws in the time after its last packet beyond
// what it would asleep.
func (r *Radio) TailJoules(after time.Duration) (joules float64) {
	for _, s := range r.Tail {
		awake := min(s.Time, max(0, after))
		joules += s.Joules(awake) - State{r.IdleMW, awake}.Joules(awake)
		after -= s.Time
	}
	return joules
}

// TailTime is how long after its last packet the radio is asleep.
func (r *Radio) TailTime() (sum time.Duration) {
	for _, s := range r.Tail {
		sum += s.Time
	}
	return sum
}

// Load is a link that receives at a rate.
type Load struct {
	Radio *Radio
	Rate  quantity.Rate
}

// DeviceMW is what the device draws whatever its links do.
func (m *Model) DeviceMW() float64 { return m.BaseMW + m.PhoneMW }

// PowerMW is what the device draws while the links receive at these rates, and
// others do nothing, asleep.
func (m *Model) PowerMW(loads ...Load) float64 {
	power := m.DeviceMW()
	if len(loads) > 0 {
		power += m.SharedMW + m.BothMW*float64(len(loads)-1)
	}
	for _, l := range loads {
		power += l.Radio.ActiveMW + l.Radio.DownMJ*l.Rate.MegabitsPerSecond()
	}
	return power
}
