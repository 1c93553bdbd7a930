// Package metrics exports Prometheus metrics of downloads.
package metrics

import (
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/rundir"
)

// Labels are the labels of every series. None may hold a URL.
type Labels struct {
	Run, Scenario, Algorithm, Seed string
}

// Metrics holds the metrics of all downloads of this process.
type Metrics struct {
	registry *prometheus.Registry
	links    map[string]*linkMetrics

	mu sync.Mutex
	// active holds the downloads that have not ended.
	active map[*Download]struct{}
	// progress is the progress of the last download while none is active.
	progress float64
}

type linkMetrics struct {
	received, wasted, failovers prometheus.Counter
	requestSize                 prometheus.Observer
	inFlight, rtt               prometheus.Gauge
}

// requestSizes are the buckets of request sizes, from a DATA frame to a whole file: 16 KiB to 1 GiB
// in factors of 4.
var requestSizes = prometheus.ExponentialBuckets(16<<10, 4, 9)

// New returns metrics in which every link has all of its series, at 0.
func New(labels Labels, links []string) *Metrics {
	m := &Metrics{
		registry: prometheus.NewPedanticRegistry(),
		links:    map[string]*linkMetrics{},
		active:   map[*Download]struct{}{},
	}
	register := prometheus.WrapRegistererWithPrefix("multilink_", prometheus.WrapRegistererWith(prometheus.Labels{
		"run": labels.Run, "scenario": labels.Scenario, "algorithm": labels.Algorithm, "seed": labels.Seed,
	}, m.registry))

	byLink := []string{"link"}
	counter := func(name, help string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, byLink)
		register.MustRegister(c)
		return c
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, byLink)
		register.MustRegister(g)
		return g
	}
	received := counter("received_bytes_total", "Bytes of bodies that went over the link.")
	wasted := counter("wasted_bytes_total", "Bytes of bodies that came to no use.")
	failovers := counter("failovers_total", "Times that the link lost its work to others.")
	inFlight := gauge("requests_in_flight", "Range requests sent and not ended.")
	rtt := gauge("rtt_seconds", "Current round trip time of the link, queues included.")
	requestSize := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "request_size_bytes", Help: "Sizes of range requests.", Buckets: requestSizes,
	}, byLink)
	register.MustRegister(requestSize, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "download_progress_ratio", Help: "Part of the downloads in progress that has arrived; the last download's if there is none.",
	}, m.ratio))
	for _, link := range links {
		m.links[link] = &linkMetrics{
			received:    received.WithLabelValues(link),
			wasted:      wasted.WithLabelValues(link),
			failovers:   failovers.WithLabelValues(link),
			requestSize: requestSize.WithLabelValues(link),
			inFlight:    inFlight.WithLabelValues(link),
			rtt:         rtt.WithLabelValues(link),
		}
	}
	return m
}

// Handler serves the metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
}

// Received counts bytes of a link outside any Download.
func (m *Metrics) Received(link string, bytes quantity.Bytes) {
	m.links[link].received.Add(float64(bytes))
}

// Download returns a recorder for one download over links of New.
func (m *Metrics) Download() *Download {
	return &Download{metrics: m, links: map[string]*linkCount{}}
}

// ratio returns the progress of all downloads of known size.
func (m *Metrics) ratio() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	var arrived, size quantity.Bytes
	for d := range m.active {
		// Bytes arrive again if the server sends only the whole file.
		arrived += min(d.arrived, d.size)
		size += d.size
	}
	if size > 0 {
		return float64(arrived) / float64(size)
	}
	return m.progress
}

// Download counts the events of one download. It is a transfer.Recorder.
type Download struct {
	metrics *Metrics
	links   map[string]*linkCount

	// metrics.mu guards these fields.
	size, arrived quantity.Bytes
}

// linkCount counts the bytes of a link in two ways: from samples, which come while requests are in
// flight, and from ended requests, which are exact once all have ended.
type linkCount struct{ sampled, ended, counted quantity.Bytes }

// Record counts an event.
func (d *Download) Record(_ time.Duration, e rundir.Event) {
	switch e := e.(type) {
	case *rundir.Size:
		d.begin(quantity.Bytes(e.Bytes), quantity.Bytes(e.Resumed))
	case *rundir.Request:
		link := d.metrics.links[e.Link]
		link.inFlight.Inc()
		link.requestSize.Observe(float64(e.Length))
	case *rundir.End:
		link := d.metrics.links[e.Link]
		link.inFlight.Dec()
		link.wasted.Add(float64(e.Wasted))
		d.useless(quantity.Bytes(e.Wasted))
		count := d.count(e.Link)
		count.ended += quantity.Bytes(e.Bytes + e.Wasted)
		d.update(link, count)
	case *rundir.Late:
		link := d.metrics.links[e.Link]
		link.received.Add(float64(e.Bytes))
		link.wasted.Add(float64(e.Bytes))
	case *rundir.Failover:
		d.metrics.links[e.Link].failovers.Inc()
	case *rundir.Sample:
		link := d.metrics.links[e.Link]
		link.rtt.Set(float64(e.RTT) / 1e9)
		count := d.count(e.Link)
		count.sampled = quantity.Bytes(e.Received)
		d.update(link, count)
	case *rundir.Done:
		d.end(e.Outcome == rundir.Complete)
	}
}

func (d *Download) count(link string) *linkCount {
	if d.links[link] == nil {
		d.links[link] = &linkCount{}
	}
	return d.links[link]
}

// update adds the new bytes of the link to its metric.
func (d *Download) update(link *linkMetrics, count *linkCount) {
	bytes := max(count.sampled, count.ended) - count.counted
	count.counted += bytes
	link.received.Add(float64(bytes))
	d.metrics.mu.Lock()
	defer d.metrics.mu.Unlock()
	d.arrived += bytes
}

func (d *Download) useless(bytes quantity.Bytes) {
	d.metrics.mu.Lock()
	defer d.metrics.mu.Unlock()
	d.arrived -= bytes
}

func (d *Download) begin(size, resumed quantity.Bytes) {
	d.metrics.mu.Lock()
	defer d.metrics.mu.Unlock()
	d.size = size
	d.arrived += resumed
	d.metrics.active[d] = struct{}{}
}

func (d *Download) end(complete bool) {
	d.metrics.mu.Lock()
	defer d.metrics.mu.Unlock()
	delete(d.metrics.active, d)
	switch {
	case complete:
		d.metrics.progress = 1
	case d.size > 0:
		d.metrics.progress = float64(min(d.arrived, d.size)) / float64(d.size)
	default:
		d.metrics.progress = 0
	}
}
