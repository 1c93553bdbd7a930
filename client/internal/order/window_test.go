package order

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/linklab/linklab/client/internal/download"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var _ download.Window = (*Window)(nil)

func begin(t *testing.T, size int64, part ranges.Range) *Window {
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

// Several writers take the lowest bytes below the limit, write them late, in
// pieces, and some of them twice; a reader of its own pace gets them in order.
func TestRangesBecomeAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		content := random(1_000_000)
		part := ranges.Range{Offset: 12_345, Length: 900_000}
		w := begin(t, 50_000, part)
		var mu sync.Mutex
		next, most := part.Offset, int64(0)
		var wg sync.WaitGroup
		for worker := range 4 {
			source := rand.New(rand.NewPCG(uint64(worker), 0))
			wg.Go(func() {
				for {
					mu.Lock()
					from := next
					n := min(1+source.Int64N(20_000), w.Limit()-from)
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
						piece := min(1+source.Int64N(5000), from+n-offset)
						if _, err := w.WriteAt(content[offset:offset+piece], offset); err != nil {
							t.Error(err)
						}
						if source.IntN(3) == 0 { // again, from before
							again := max(offset-source.Int64N(5000), from)
							if _, err := w.WriteAt(content[again:offset+piece], again); err != nil {
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
			slow := writerFunc(func(p []byte) (int, error) {
				time.Sleep(time.Duration(len(p)) * time.Microsecond / 10)
				most = max(most, int64(len(p)))
				return got.Write(p)
			})
			if n, err := w.Copy(t.Context(), slow); n != part.Length || err != nil {
				t.Errorf("Copy gives %d, %v", n, err)
			}
		}()
		wg.Wait()
		w.Commit()
		<-done
		if !bytes.Equal(got.Bytes(), content[part.Offset:part.End()]) {
			t.Error("the stream differs from the content")
		}
		if most > w.Size() {
			t.Errorf("%d bytes were in a window of %d", most, w.Size())
		}
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestAReaderThatStopsHoldsTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, 8000, ranges.Range{Length: 100_000})
		if w.Limit() != 8000 || w.Size() != 8000 {
			t.Errorf("limit %d, size %d", w.Limit(), w.Size())
		}
		content := random(100_000)
		if _, err := w.WriteAt(content[1000:9000], 1000); err == nil || !strings.Contains(err.Error(), "bytes 1000-8999 are beyond the window, which ends at 8000") {
			t.Errorf("writing beyond the limit: %v", err)
		}
		if _, err := w.WriteAt(content[900:8000], 900); err != nil {
			t.Fatal(err)
		}
		reader, writer := io.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := w.Copy(ctx, writer)
			done <- err
		}()
		got := make([]byte, 8000)
		synctest.Wait()
		if _, err := w.WriteAt(content[:900], 0); err != nil {
			t.Fatal(err)
		}
		// What is being written is not free until all of it is read.
		for read := range 8 {
			io.ReadFull(reader, got[read*1000:read*1000+999])
			synctest.Wait()
			if want := int64(8000 + read*1000); w.Limit() != want {
				t.Errorf("the limit is %d, want %d while the reader has not taken all", w.Limit(), want)
			}
			io.ReadFull(reader, got[read*1000+999:read*1000+1000])
			synctest.Wait()
			select {
			case <-w.Grown():
			default:
				t.Error("nobody is told that the limit has grown")
			}
		}
		if w.Limit() != 16_000 || !bytes.Equal(got, content[:8000]) {
			t.Errorf("the limit is %d, want 16000", w.Limit())
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Copy ends with %v", err)
		}
	})
}

// Free room is announced in steps, and the end at once.
func TestTheLimitGrowsInSteps(t *testing.T) {
	w := begin(t, 8000, ranges.Range{Length: 10_500})
	for _, step := range []struct{ read, limit int64 }{{999, 8000}, {1, 9000}, {999, 9000}, {501, 10_500}, {100, 10_500}} {
		if _, err := w.WriteAt(make([]byte, step.read), w.next); err != nil {
			t.Fatal(err)
		}
		w.free(step.read)
		if w.Limit() != step.limit {
			t.Errorf("at %d the limit is %d, want %d", w.next, w.Limit(), step.limit)
		}
	}
}

func TestAFailureComesAfterWhatArrived(t *testing.T) {
	w := begin(t, 100, ranges.Range{Length: 300})
	w.WriteAt([]byte("before"), 0)
	w.WriteAt([]byte("after a gap"), 10)
	w.Abort(false)
	var got bytes.Buffer
	if n, err := w.Copy(t.Context(), &got); n != 6 || err == nil || got.String() != "before" {
		t.Errorf("Copy gives %q, %v", got.String(), err)
	}
}

func TestAWriterThatFailsEndsTheCopy(t *testing.T) {
	w := begin(t, 100, ranges.Range{Length: 300})
	w.WriteAt([]byte("text"), 0)
	broken := errors.New("broken pipe")
	if _, err := w.Copy(t.Context(), writerFunc(func([]byte) (int, error) { return 0, broken })); err != broken {
		t.Errorf("Copy gives %v", err)
	}
}

func TestNothingToCopy(t *testing.T) {
	w := begin(t, 100, ranges.Range{})
	w.Commit()
	if n, err := w.Copy(t.Context(), io.Discard); n != 0 || err != nil {
		t.Errorf("Copy gives %d, %v", n, err)
	}
}
