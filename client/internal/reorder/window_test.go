package reorder

import (
	"bytes"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/linklab/linklab/client/internal/download"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/transport"
	"github.com/linklab/linklab/client/tests/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var _ download.Window = (*Window)(nil)

func begin(t *testing.T, size quantity.Bytes, part ranges.Range) *Window {
	t.Helper()
	w := NewWindow(size)
	if have, err := w.Begin(transport.Resource{Size: part.End()}, part); len(have) > 0 || err != nil {
		t.Fatal(have, err)
	}
	return w
}

func random(size int) []byte {
	content := make([]byte, size)
	rand.NewChaCha8([32]byte{1}).Read(content)
	return content
}

// Several writers take the lowest bytes below the limit. They write these late, in pieces, and some
// of them twice. A slow reader gets them in order.
func TestRangesBecomeAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		content := random(1_000_000)
		part := ranges.Range{Offset: 12_345, Length: 900_000}
		w := begin(t, 50_000, part)
		var mu sync.Mutex
		next := part.Offset
		var wg sync.WaitGroup
		for worker := range 4 {
			source := rand.New(rand.NewPCG(uint64(worker), 0))
			wg.Go(func() {
				for {
					mu.Lock()
					from := next
					n := min(1+quantity.Bytes(source.Int64N(20_000)), w.Limit()-from)
					next += n
					mu.Unlock()
					if from == part.End() {
						return
					}
					if n == 0 {
						time.Sleep(time.Millisecond)
						continue
					}
					for offset := from; offset < from+n; {
						time.Sleep(time.Duration(source.IntN(1000)) * time.Microsecond)
						piece := min(1+quantity.Bytes(source.Int64N(5000)), from+n-offset)
						if _, err := w.WriteAt(content[offset:offset+piece], int64(offset)); err != nil {
							t.Error(err)
						}
						if source.IntN(3) == 0 { // Write some bytes again.
							again := max(offset-quantity.Bytes(source.Int64N(5000)), from)
							if _, err := w.WriteAt(content[again:offset+piece], int64(again)); err != nil {
								t.Error(err)
							}
						}
						offset += piece
					}
				}
			})
		}
		var got bytes.Buffer
		done := make(chan struct{})
		go func() {
			defer close(done)
			p := make([]byte, 7000)
			for {
				n, err := w.Read(p)
				got.Write(p[:n])
				if err == io.EOF {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(time.Duration(n) * time.Microsecond / 10)
			}
		}()
		wg.Wait()
		w.Commit()
		<-done
		testkit.SameList(t, got.Bytes(), content[part.Offset:part.End()])
	})
}

func TestTheLimitIsThatOfTheRoom(t *testing.T) {
	w := begin(t, 8000, ranges.Range{Length: 100_000})
	testkit.Holds(t, w.Limit() == 8000 && w.Size() == 8000, w.Limit(), w.Size())
	content := random(100_000)
	if _, err := w.WriteAt(content[1000:9000], 1000); err == nil || !strings.Contains(err.Error(), "bytes 1000-8999 are beyond the window, which ends at 8000") {
		t.Errorf("writing beyond the limit: %v", err)
	}
	for offset, end := range map[int]int{900: 8000, 0: 900} {
		if _, err := w.WriteAt(content[offset:end], int64(offset)); err != nil {
			t.Fatal(err)
		}
	}
	got := make([]byte, 8000)
	if _, err := io.ReadFull(w, got); err != nil || !bytes.Equal(got, content[:8000]) {
		t.Errorf("the stream differs from the content (%v)", err)
	}
	select {
	case <-w.Grown():
	default:
		t.Error("nobody is told that the limit has grown")
	}
	testkit.Same(t, w.Limit(), 16_000)
}

// The limit grows in steps. The end is announced at once.
func TestTheLimitGrowsInSteps(t *testing.T) {
	w := begin(t, 8000, ranges.Range{Length: 10_500})
	for _, step := range []struct{ read, limit quantity.Bytes }{{999, 8000}, {1, 9000}, {999, 9000}, {501, 10_500}, {100, 10_500}} {
		if _, err := w.WriteAt(make([]byte, step.read), int64(w.next)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(w, make([]byte, step.read)); err != nil {
			t.Fatal(err)
		}
		testkit.Same(t, w.Limit(), step.limit, w.next)
	}
}

func TestAFailureComesAfterWhatArrived(t *testing.T) {
	w := begin(t, 100, ranges.Range{Length: 300})
	w.WriteAt([]byte("before"), 0)
	w.WriteAt([]byte("after a gap"), 10)
	w.Abort(false)
	if got, err := io.ReadAll(w); string(got) != "before" || err != ErrFailed {
		t.Errorf("the stream is %q, %v", got, err)
	}
}

func TestAFailureWakesTheReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWindow(100)
		done := make(chan error)
		go func() {
			_, err := w.Read(make([]byte, 1))
			done <- err
		}()
		synctest.Wait()
		w.Abort(false)
		testkit.Same(t, <-done, ErrFailed)
	})
}

func TestNothingToRead(t *testing.T) {
	w := begin(t, 100, ranges.Range{})
	w.Commit()
	if got, err := io.ReadAll(w); len(got) > 0 || err != nil {
		t.Errorf("the stream is %q, %v", got, err)
	}
}
