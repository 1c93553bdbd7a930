// Package linklabtest puts Go tests behind emulated links: it starts a lab of linklab on the real
// clock, whose links a test changes while its programs run.
//
// A lab is the command `linklab live` in a process of its own. It ends with the test, also if the
// test is killed. Only Linux has labs.
//
// Labs on the real clock disturb each other. So tests that start one should not be parallel, and
// several packages with such tests need `go test -p 1`.
package linklabtest

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"
)

const (
	// startTime is how long a lab may start without a further word of what it does, on a busy machine.
	startTime = 2 * time.Minute
	// between is the interval of looks at a lab.
	between = 50 * time.Millisecond
)

// Program is the environment variable with the program linklab. Without it the one on PATH is started.
const Program = "LINKLAB"

// An Option is how a lab is started.
type Option func(*options)

type options struct {
	words []string
	out   string
	start time.Duration
}

// Origin puts a server behind the links, by its URL such as that of an httptest.Server. The option may
// be repeated. Lab.Origins has the URLs to ask for.
func Origin(url string) Option {
	return func(o *options) { o.words = append(o.words, "--origin", url) }
}

// Outside lets the lab reach everything that this machine reaches, by TCP and UDP.
func Outside() Option {
	return func(o *options) { o.words = append(o.words, "--outside") }
}

// Seed sets the seed of everything random in the scenario. The default is 1.
func Seed(seed int) Option {
	return func(o *options) { o.words = append(o.words, "--seed", strconv.Itoa(seed)) }
}

// Place sets where the lab runs: "auto" (the default), "guest" or "host".
func Place(place string) Option {
	return func(o *options) { o.words = append(o.words, "--place", place) }
}

// Out keeps the lab's run directories in a directory. By default they are removed with the test.
func Out(directory string) Option {
	return func(o *options) { o.out = directory }
}

// StartTime sets how long the lab may start without a further word of what it does. The default is two
// minutes. The first lab of a machine makes the guest, and tells how far it is.
func StartTime(limit time.Duration) Option {
	return func(o *options) { o.start = limit }
}

// A Lab is a lab on the real clock. Goroutines may share it.
type Lab struct {
	// Proxy is the URL of an HTTP and SOCKS5 proxy over all links, such as for http_proxy.
	Proxy string
	// Proxies has the URLs of the proxies over one link, by the link's name.
	Proxies map[string]string
	// Origins has the URLs of the given origins, as they are behind the links.
	Origins []string
	// Metrics is the URL of the lab's metrics for Prometheus.
	Metrics string

	t       testing.TB
	control *control
	end     func()
}

// Start starts a lab for a scenario: a name of `linklab scenarios`, or a YAML file. It returns when the
// links have their first state. The lab ends with the test.
//
// The test fails if the lab does not start. Without linklab on this machine the test is skipped, but
// fails where the environment variable CI is set.
func Start(t testing.TB, scenario string, how ...Option) *Lab {
	t.Helper()
	program := located(t)
	lab, err := start(program, scenario, append([]Option{Out(t.TempDir())}, how...))
	if err != nil {
		t.Fatalf("linklabtest: %v", err)
	}
	t.Cleanup(lab.end)
	return lab.of(t)
}

// of returns the lab for a test, which fails with the lab's errors.
func (l *Lab) of(t testing.TB) *Lab {
	lab := *l
	lab.t = t
	return &lab
}

// start starts a lab.
func start(program, scenario string, how []Option) (*Lab, error) {
	chosen := options{start: startTime}
	for _, option := range how {
		option(&chosen)
	}
	words := append([]string{
		"live", scenario, "--out", chosen.out, "--listen", "127.0.0.1:0", "--listen-proxy", "0",
		"--addresses-fd", strconv.Itoa(addressesFD),
	}, chosen.words...)
	control := newControl()
	child, err := startChild(program, words, tokenVariable+"="+control.token)
	if err != nil {
		return nil, fmt.Errorf("the lab did not start: %w", err)
	}
	var told addresses
	lacks := func() string {
		if told.Address == "" {
			select {
			case told = <-child.told:
			default:
				return "it says no addresses"
			}
		}
		control.url = "http://" + told.Address
		if !control.isRunning() {
			return "no link has a state"
		}
		return ""
	}
	if err := child.await(lacks, chosen.start); err != nil {
		child.end()
		return nil, err
	}
	proxy := told.Proxies[""]
	delete(told.Proxies, "")
	return &Lab{proxy, told.Proxies, told.Origins, control.url + "/metrics", nil, control, child.end}, nil
}

// Restore sets the lab back to the scenario's start: links, events and models begin anew, changes end,
// queues are empty, and all connections over the links end. It logs what the lab cannot set back.
func (l *Lab) Restore() {
	l.t.Helper()
	stays, err := l.control.restore()
	if err != nil {
		l.t.Fatalf("linklabtest: %v", err)
	}
	for _, one := range stays {
		l.t.Logf("linklabtest: not set back: %s", one)
	}
}

// located returns the program linklab. It ends the test if there is none.
func located(t testing.TB) string {
	t.Helper()
	name, isNamed := os.LookupEnv(Program)
	if !isNamed {
		name = "linklab"
	}
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	why := fmt.Sprintf("linklabtest: no linklab here: %v; install its wheel (make wheel, in a checkout), or set %s", err, Program)
	if isNamed || os.Getenv("CI") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
	return ""
}

// RoundTripper returns a transport over all links, for an http.Client. It asks the URLs of Origins, and
// with Outside all others. Each call returns a new transport, whose fields may be set before its use.
func (l *Lab) RoundTripper() *http.Transport { return l.transport(l.Proxy) }

// Link returns a link by its name. The test fails if the scenario has no such link. Call Link in the
// goroutine of the test.
func (l *Lab) Link(name string) *Link {
	l.t.Helper()
	if _, known := l.Proxies[name]; !known {
		// The lab refuses the change of an unknown link, and its answer says which links there are.
		err := l.control.change(name, Change{"carrier": "up"})
		l.t.Fatalf("linklabtest: %v", err)
	}
	return &Link{Name: name, lab: l}
}

func (l *Lab) transport(proxy string) *http.Transport {
	way, err := url.Parse(proxy)
	if err != nil {
		panic(err) // Only the lab sets it.
	}
	made := &http.Transport{Proxy: http.ProxyURL(way)}
	l.t.Cleanup(made.CloseIdleConnections)
	return made
}
