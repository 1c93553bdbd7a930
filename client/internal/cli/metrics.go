package cli

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"github.com/linklab/linklab/client/internal/metrics"
	"github.com/linklab/linklab/client/internal/transfer"
)

// metricsFlags are the flags for Prometheus as the user wrote them.
type metricsFlags struct {
	address string
	labels  []string
}

func (f *metricsFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.address, "metrics", "", "serve Prometheus metrics at /metrics on HOST:PORT")
	flags.StringArrayVar(&f.labels, "metrics-label", nil, "label of all metrics, as NAME=VALUE with NAME run, scenario or seed (repeatable)")
}

// start serves metrics until stop is called. Without the flags it returns nil metrics.
func (f *metricsFlags) start(algorithm string, links []transfer.Link) (m *metrics.Metrics, stop func(), err error) {
	labels, err := f.parseLabels()
	if err != nil || f.address == "" {
		return nil, func() {}, err
	}
	labels.Algorithm = algorithm
	if _, _, err = net.SplitHostPort(f.address); err != nil {
		return nil, nil, usageError{invalid("metrics", f.address, "allowed is HOST:PORT")}
	}
	listener, err := net.Listen("tcp", f.address)
	if err != nil {
		return nil, nil, fmt.Errorf("metrics: %w", err)
	}
	names := make([]string, len(links))
	for i, l := range links {
		names[i] = l.Name
	}
	m = metrics.New(labels, names)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m.Handler())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	return m, func() {
		// A scrape that has begun may end, because it is often the last one.
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			server.Close()
		}
		<-done
	}, nil
}

func (f *metricsFlags) parseLabels() (l metrics.Labels, err error) {
	for _, text := range f.labels {
		name, value, _ := strings.Cut(text, "=")
		if !utf8.ValidString(value) {
			return l, usageError{invalid("metrics-label", text, "allowed are values in UTF-8")}
		}
		switch name {
		case "run":
			l.Run = value
		case "scenario":
			l.Scenario = value
		case "seed":
			l.Seed = value
		default:
			return l, usageError{invalid("metrics-label", text, "allowed is NAME=VALUE with NAME run, scenario or seed")}
		}
	}
	return l, nil
}
