package workload

import (
	"math"
	"math/rand/v2"
	"sort"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
)

// Media is a stream that is played at its own rate. It knows how long any number of its first bytes
// plays.
type Media struct {
	size quantity.Bytes
	rate quantity.Rate
	// ends are the ends of the stream's seconds in bytes. The last second may be shorter.
	ends []float64
}

// NewMedia returns a stream of this size and mean rate. The bytes of its seconds have a log-normal
// distribution with variation as the coefficient of variation. With 0 all are equal.
func NewMedia(size quantity.Bytes, rate quantity.Rate, variation float64, seed uint64) *Media {
	m := &Media{size: size, rate: rate}
	seconds := m.Duration().Seconds()
	random := rand.New(rand.NewPCG(seed, 0))
	sigma := math.Sqrt(math.Log1p(variation * variation))
	var total float64
	for left := seconds; left > 0; left-- {
		total += min(left, 1) * math.Exp(sigma*random.NormFloat64())
		m.ends = append(m.ends, total)
	}
	for i := range m.ends {
		m.ends[i] *= float64(size) / total
	}
	return m
}

// Duration returns how long the whole stream plays.
func (m *Media) Duration() time.Duration {
	return time.Duration(float64(m.size) / m.rate.BytesPerSecond() * float64(time.Second))
}

// Length returns how long so many first bytes play.
func (m *Media) Length(bytes quantity.Bytes) time.Duration {
	if bytes >= m.size {
		return m.Duration()
	}
	second := sort.SearchFloat64s(m.ends, float64(bytes))
	begin, length := m.second(second)
	part := (float64(bytes) - begin) / (m.ends[second] - begin)
	return time.Duration((float64(second) + part*length) * float64(time.Second))
}

// Bytes returns how many bytes play in that time from the start.
func (m *Media) Bytes(length time.Duration) quantity.Bytes {
	if length >= m.Duration() {
		return m.size
	}
	second := int(length / time.Second)
	begin, whole := m.second(second)
	part := (length - time.Duration(second)*time.Second).Seconds() / whole
	return quantity.Bytes(begin + part*(m.ends[second]-begin))
}

// second returns where a second begins in bytes, and its length in seconds.
func (m *Media) second(i int) (begin, length float64) {
	if i > 0 {
		begin = m.ends[i-1]
	}
	return begin, min(1, m.Duration().Seconds()-float64(i))
}

// Pieces divides a size into parts of the same size. The last one may be smaller.
func Pieces(size, each quantity.Bytes) (cut []ranges.Range) {
	for offset := quantity.Bytes(0); offset < size; offset += each {
		cut = append(cut, ranges.Range{Offset: offset, Length: min(each, size-offset)})
	}
	return cut
}

// Cut divides the stream into segments of the same playback time. The last one may be shorter.
func (m *Media) Cut(each time.Duration) (cut []ranges.Range) {
	var offset quantity.Bytes
	for end := each; offset < m.size; end += each {
		if length := m.Bytes(end) - offset; length > 0 {
			cut = append(cut, ranges.Range{Offset: offset, Length: length})
			offset += length
		}
	}
	return cut
}
