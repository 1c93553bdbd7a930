package transport

import (
	"math/rand/v2"
	"testing"
)

// However the frames are cut into reads, exactly the content of DATA frames
// is counted as data.
func TestDataAreCounted(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	for range 100 {
		var r recorder
		var want int64
		for range 50 {
			kind, length := byte(random.IntN(3)), random.IntN(300)
			if kind == frameData {
				want += int64(length)
			}
			r.Buffer.Write(frame(kind, uint32(random.IntN(9)), make([]byte, length)))
		}
		c := &dataCounter{Conn: &r}
		for {
			n, err := c.Read(make([]byte, 1+random.IntN(40)))
			if n == 0 || err != nil {
				break
			}
		}
		if got := c.data.Load(); got != want {
			t.Fatalf("%d bytes of data, want %d", got, want)
		}
	}
}
