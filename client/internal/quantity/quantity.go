// Package quantity has types for byte counts and data rates, and parses those that users write.
package quantity

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Bytes is a number of bytes, or an offset in a file. It can be the value of a flag.
type Bytes int64

// Megabytes returns the bytes in units of 10⁶, as in tables.
func (b Bytes) Megabytes() float64 { return float64(b) / 1e6 }

// Per returns the rate of so many bytes in that time.
func (b Bytes) Per(t time.Duration) Rate { return Rate(8 * float64(b) / t.Seconds()) }

var sizeUnits = map[string]float64{
	"": 1, "b": 1,
	"kb": 1e3, "mb": 1e6, "gb": 1e9,
	"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30,
}

// Set parses a size above 0 such as 1000kB, 1.5MB or 64KiB.
func (b *Bytes) Set(text string) error {
	bytes, err := parse(text, sizeUnits)
	if err != nil || bytes < 1 || bytes >= math.MaxInt64 {
		return fmt.Errorf("%q is not a size: allowed are numbers of at least 1 B with B, kB, MB, GB (powers of 1000), KiB, MiB, GiB (powers of 1024) or no unit (bytes)", text)
	}
	*b = Bytes(bytes)
	return nil
}

// Type returns the type of the value in help.
func (*Bytes) Type() string { return "size" }

// String formats the size so that Set can parse it. It formats 0, which Set refuses, as "0".
func (b *Bytes) String() string {
	if *b == 0 {
		return "0"
	}
	if *b%1000 == 0 {
		return fmt.Sprintf("%dkB", *b/1000)
	}
	return fmt.Sprintf("%dB", *b)
}

// Rate is a data rate in bits per second.
type Rate float64

// MegabitsPerSecond returns the rate in Mbit/s, as in tables.
func (r Rate) MegabitsPerSecond() float64 { return float64(r) / 1e6 }

// BytesPerSecond returns the rate in bytes per second.
func (r Rate) BytesPerSecond() float64 { return float64(r) / 8 }

// Over returns how many bytes pass in that time, not rounded.
func (r Rate) Over(t time.Duration) float64 { return r.BytesPerSecond() * t.Seconds() }

var rateUnits = map[string]float64{"bit": 1, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9}

// ParseRate reads a rate above 0 such as 80Mbit/s, 80mbit or 1.5Gbit/s.
func ParseRate(text string) (Rate, error) {
	bits, err := parse(strings.TrimSuffix(text, "/s"), rateUnits)
	if err != nil || bits <= 0 {
		return 0, fmt.Errorf("%q is not a rate: allowed are numbers above 0 with bit/s, kbit/s, Mbit/s or Gbit/s", text)
	}
	return Rate(bits), nil
}

func parse(text string, units map[string]float64) (float64, error) {
	number := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	factor, ok := units[strings.ToLower(text[len(number):])]
	if !ok {
		return 0, fmt.Errorf("unknown unit %q", text[len(number):])
	}
	value, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || math.IsNaN(value) || math.IsInf(value, 0) {
		return 0, fmt.Errorf("%q is not a number", number)
	}
	return value * factor, nil
}
