// Package progress shows a running download on a terminal.
package progress

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/linklab/linklab/client/internal/printable"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/transfer"
)

// Bars shows a bar for each link, with its part of the file and its throughput, and a bar for the
// bytes of earlier calls. It is a transfer.Recorder.
type Bars struct {
	container *mpb.Progress
	links     map[string]*linkBar
	// earlier is the bar of the bytes of earlier calls, nil without such.
	earlier *mpb.Bar
}

type linkBar struct {
	bar *mpb.Bar
	// rate is the throughput in bits per second.
	rate atomic.Int64
}

// New starts bars for the links on the terminal w.
func New(w io.Writer, links []transfer.Link) *Bars {
	b := &Bars{
		container: mpb.New(mpb.WithOutput(w), mpb.WithAutoRefresh(), mpb.WithRefreshRate(2*rundir.SampleInterval)),
		links:     map[string]*linkBar{},
	}
	for _, l := range links {
		line := &linkBar{}
		line.bar = b.add(printable.Text(l.Name), func(decor.Statistics) string {
			return fmt.Sprintf("%.1f Mbit/s", quantity.Rate(line.rate.Load()).MegabitsPerSecond())
		})
		b.links[l.Name] = line
	}
	return b
}

// add adds a bar with a column for the rate.
func (b *Bars) add(name string, rate decor.DecorFunc) *mpb.Bar {
	return b.container.AddBar(0,
		mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name(name, decor.WCSyncSpaceR), decor.Any(rate, decor.WCSyncSpace)),
		mpb.AppendDecorators(decor.CountersKiloByte("% .1f of % .1f")),
	)
}

// Record updates the bars.
func (b *Bars) Record(_ time.Duration, e rundir.Event) {
	switch e := e.(type) {
	case *rundir.Size:
		for _, l := range b.links {
			l.bar.SetTotal(e.Bytes, false)
		}
		if e.Resumed > 0 {
			b.earlier = b.add("earlier", func(decor.Statistics) string { return "" })
			b.earlier.SetTotal(e.Bytes, false)
			b.earlier.SetCurrent(e.Resumed)
		}
	case *rundir.Sample:
		l := b.links[e.Link]
		l.rate.Store(int64(e.Throughput))
		l.bar.SetCurrent(e.Received)
	}
}

// Close removes the bars from the terminal.
func (b *Bars) Close() {
	for _, l := range b.links {
		l.bar.Abort(true)
	}
	if b.earlier != nil {
		b.earlier.Abort(true)
	}
	b.container.Wait()
}
