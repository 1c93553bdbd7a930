package quota

import (
	"fmt"
	"strings"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
)

// Period is the time after which an account begins again, in local time.
type Period string

// The periods. Always, the zero value, never ends.
const (
	Always Period = ""
	Day    Period = "day"
	Week   Period = "week"
	Month  Period = "month"
)

// begin returns the beginning of the period with t: midnight, of a Monday, or of the first of a
// month. It returns the zero time for Always.
func (p Period) begin(t time.Time) time.Time {
	year, month, day := t.Date()
	switch p {
	case Day:
	case Week:
		sinceMonday := (int(t.Weekday()) + 6) % 7
		day -= sinceMonday
	case Month:
		day = 1
	default:
		return time.Time{}
	}
	return time.Date(year, month, day, 0, 0, 0, 0, t.Location())
}

// end returns the end of the period that began at begin, zero for Always.
func (p Period) end(begin time.Time) time.Time {
	switch p {
	case Day:
		return begin.AddDate(0, 0, 1)
	case Week:
		return begin.AddDate(0, 0, 7)
	case Month:
		return begin.AddDate(0, 1, 0)
	}
	return time.Time{}
}

// ParseCap parses SIZE or SIZE/PERIOD such as 5GB/month. Without a period it returns Always.
func ParseCap(text string) (bytes quantity.Bytes, period Period, err error) {
	number, name, ok := strings.Cut(text, "/")
	var size quantity.Bytes
	if err := size.Set(number); err != nil {
		return 0, Always, err
	}
	if !ok {
		return size, Always, nil
	}
	switch period := Period(name); period {
	case Day, Week, Month:
		return size, period, nil
	}
	return 0, Always, fmt.Errorf("%q is not a period: allowed are day, week and month", name)
}
