package transport

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/tests/testkit"
)

// paddedFrame is a DATA frame with padding.
func paddedFrame(stream uint32, data []byte, padding byte) []byte {
	content := append([]byte{padding}, data...)
	f := testkit.Frame(frameData, stream, append(content, bytes.Repeat([]byte{1}, int(padding))...)...)
	f[frameFlagsOffset] = flagPadded
	return f
}

// In any division of the frames into reads, exactly the bytes of DATA frames are counted, for
// each stream with a reader.
func TestDataAreCounted(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	for range 100 {
		var r recorder
		var want quantity.Bytes
		wantOf := map[uint32]quantity.Bytes{}
		for range 50 {
			kind, length, stream := byte(random.IntN(4)), random.IntN(300), uint32(random.IntN(9))
			data := make([]byte, length)
			switch kind {
			case 3:
				r.Write(paddedFrame(stream, data, byte(random.IntN(256))))
			case frameData:
				r.Write(testkit.Frame(frameData, stream, data...))
			default:
				r.Write(testkit.Frame(kind, stream, data...))
				continue
			}
			want += quantity.Bytes(length)
			wantOf[stream] += quantity.Bytes(length)
		}
		b := newBacklog()
		read := uint32(random.IntN(9))
		b.begin(read)
		c := newDataCounter(&r, b, new(endCause))
		for {
			n, err := c.Read(make([]byte, 1+random.IntN(40)))
			if n == 0 || err != nil {
				break
			}
		}
		if got := quantity.Bytes(c.data.Load()); got != want {
			t.Fatalf("%d bytes of data, want %d", got, want)
		}
		if b.sum != wantOf[read] {
			t.Fatalf("%d bytes wait for the reader of stream %d, want %d", b.sum, read, wantOf[read])
		}
	}
}

// In any division of the frames into reads, GOAWAY is noticed, and a stream reset with
// PROTOCOL_ERROR, after which net/http sends nothing more. Other resets end one stream.
func TestGoAwayIsNoticed(t *testing.T) {
	for name, test := range map[string]struct {
		kind      byte
		content   []byte
		goingAway bool
	}{
		"GOAWAY":                 {frameGoAway, []byte{0, 0, 0, 9, 0, 0, 0, 0}, true},
		"error of protocol":      {frameReset, []byte{0, 0, 0, 1}, true},
		"refused stream":         {frameReset, []byte{0, 0, 0, 7}, false},
		"cancelled stream":       {frameReset, []byte{0, 0, 0, 8}, false},
		"data like a reset":      {frameData, []byte{0, 0, 0, 1}, false},
		"settings with a 1 last": {4, []byte{0, 3, 0, 0, 0, 1}, false},
	} {
		for size := 1; size < 40; size++ {
			var r recorder
			r.Write(testkit.Frame(frameData, 1, make([]byte, 5)...))
			r.Write(testkit.Frame(test.kind, 3, test.content...))
			r.Write(testkit.Frame(frameData, 1, []byte{0, 0, 0, 1}...))
			c := newDataCounter(&r, newBacklog(), new(endCause))
			for {
				if n, err := c.Read(make([]byte, size)); n == 0 || err != nil {
					break
				}
			}
			testkit.Same(t, c.goingAway.Load(), test.goingAway, name, size)
		}
	}
}
