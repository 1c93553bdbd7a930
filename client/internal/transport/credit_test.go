package transport

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net"
	"testing"

	"github.com/linklab/linklab/client/tests/testkit"
)

// recorder keeps what is written to it.
type recorder struct {
	net.Conn
	bytes.Buffer
}

func (r *recorder) Write(p []byte) (int, error) { return r.Buffer.Write(p) }
func (r *recorder) Read(p []byte) (int, error)  { return r.Buffer.Read(p) }

func credit(stream, bytes uint32) []byte {
	return testkit.Frame(frameWindowUpdate, stream, binary.BigEndian.AppendUint32(nil, bytes)...)
}

var preface = []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")

// split separates credit from the other frames.
func split(t *testing.T, written []byte) (others []byte, credits map[uint32]int64, updates int) {
	t.Helper()
	if !bytes.HasPrefix(written, preface) {
		t.Fatalf("the connection does not begin with the preface but with %q", written[:min(24, len(written))])
	}
	credits = map[uint32]int64{}
	for rest := written[len(preface):]; len(rest) > 0; {
		n := frameHeaderLength + int(rest[0])<<16 + int(rest[1])<<8 + int(rest[2])
		if len(rest) < n {
			t.Fatalf("%d bytes of a frame of %d", len(rest), n)
		}
		if rest[frameTypeOffset] == frameWindowUpdate {
			credits[binary.BigEndian.Uint32(rest[frameStreamOffset:])] += int64(binary.BigEndian.Uint32(rest[windowIncrementOffset:]))
			updates++
		} else {
			others = append(others, rest[:n]...)
		}
		rest = rest[n:]
	}
	return others, credits, updates
}

// In any division of the frames into writes, all frames except credit pass unchanged and in
// order. No more credit is missing than may wait.
func TestCreditIsHeldBackAndNothingElse(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for range 50 {
		stream := append([]byte(nil), preface...)
		stream = append(stream, testkit.Frame(4, 0, make([]byte, 18)...)...)
		stream = append(stream, credit(0, connectionWindow)...)
		given := map[uint32]int64{0: connectionWindow}
		for i := range 3000 {
			id := uint32(1 + 2*(i/300+random.IntN(3)))
			if random.IntN(10) == 0 {
				stream = append(stream, testkit.Frame(byte(random.IntN(8)), id, make([]byte, random.IntN(300))...)...)
				continue
			}
			bytes := uint32(1 + random.IntN(1<<20))
			stream = append(stream, credit(0, bytes)...)
			stream = append(stream, credit(id, bytes)...)
			given[0] += int64(bytes)
			given[id] += int64(bytes)
		}
		var r recorder
		s := newCreditSaver(&r, newBacklog(), new(endCause))
		for rest := stream; len(rest) > 0; {
			n := min(len(rest), 1+random.IntN(40))
			if written, err := s.Write(rest[:n]); written != n || err != nil {
				t.Fatalf("Write of %d bytes returns %d, %v", n, written, err)
			}
			rest = rest[n:]
		}
		wantOthers, _, given0 := split(t, stream)
		others, credits, updates := split(t, r.Bytes())
		if !bytes.Equal(others, wantOthers) {
			t.Fatal("frames other than credit are changed")
		}
		testkit.Holds(t, updates <= given0/10, updates, given0)
		for id, bytes := range given {
			step := int64(streamCreditStep)
			if id == connectionStream {
				step = connectionCreditStep
			}
			if missing := bytes - credits[id]; missing < 0 || missing >= step {
				t.Errorf("stream %d misses %d bytes of credit, want from 0 to below %d", id, missing, step)
			}
		}
	}
}

// A connection that has served many requests does not remember all of them.
func TestCreditOfEndedStreamsIsReleased(t *testing.T) {
	var r recorder
	s := newCreditSaver(&r, newBacklog(), new(endCause))
	s.Write(preface)
	for id := range uint32(1000) {
		s.Write(credit(1+2*id, 1000))
		if len(s.withheld) > maxWithheldStreams {
			t.Fatalf("credit for %d streams is held back", len(s.withheld))
		}
	}
	if _, credits, _ := split(t, r.Bytes()); len(credits) < 1000-maxWithheldStreams {
		t.Errorf("credit for %d streams passed", len(credits))
	}
}

func TestCreditPassesWhenItIsWorthIt(t *testing.T) {
	var r recorder
	s := newCreditSaver(&r, newBacklog(), new(endCause))
	s.Write(preface)
	r.Reset()
	for range 3 {
		s.Write(credit(1, streamCreditStep/4))
	}
	testkit.Same(t, r.Len(), 0, r.Bytes())
	s.Write(credit(1, streamCreditStep/4))
	testkit.SameList(t, r.Bytes(), credit(1, streamCreditStep))
}
