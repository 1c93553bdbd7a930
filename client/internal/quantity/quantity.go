// Package quantity reads the sizes and rates that users write.
package quantity

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes that can be a command line flag.
type Size int64

var sizeUnits = map[string]float64{
	"": 1, "b": 1,
	"kb": 1e3, "mb": 1e6, "gb": 1e9,
	"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30,
}

// Set reads a size above 0 such as 1000kB, 1.5MB or 64KiB.
func (s *Size) Set(text string) error {
	bytes, err := parse(text, sizeUnits)
	if err != nil || bytes < 1 || bytes >= math.MaxInt64 {
		return fmt.Errorf("%q is not a size: allowed are numbers of at least 1 B with B, kB, MB, GB (powers of 1000), KiB, MiB, GiB (powers of 1024) or no unit (bytes)", text)
	}
	*s = Size(bytes)
	return nil
}

// Type names the kind of value in the help text.
func (*Size) Type() string { return "size" }

func (s *Size) String() string {
	if *s%1000 == 0 {
		return fmt.Sprintf("%dkB", *s/1000)
	}
	return fmt.Sprintf("%dB", *s)
}

// Rate is a data rate in bits per second.
type Rate float64

// BytesPerSecond converts the rate.
func (r Rate) BytesPerSecond() float64 { return float64(r) / 8 }

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
