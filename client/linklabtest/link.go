package linklabtest

import (
	"fmt"
	"net/http"
	"time"
)

// A Link is a link of a lab. Each method but RoundTripper and Carried changes the link, and returns when
// the lab has applied the change. Any goroutine may call the methods.
//
// A change lasts until the next one, or for a time if one is given. The test fails if the link cannot
// do what is asked for, or if the lab has ended.
type Link struct {
	// Name is the link's name in the scenario.
	Name string
	lab  *Lab
}

// A Change is a new value of a link's property.
type Change struct {
	change, value string
	span          time.Duration
}

// Rate sets the downlink's rate, such as "10 Mbit/s".
func Rate(value string) Change { return Change{change: "rate", value: value} }

// Uplink sets the uplink's rate, such as "2 Mbit/s".
func Uplink(value string) Change { return Change{change: "uplink", value: value} }

// RTT sets the round trip, such as "80 ms".
func RTT(value string) Change { return Change{change: "rtt", value: value} }

// Jitter sets the jitter, such as "4 ms". It is at most half the round trip.
func Jitter(value string) Change { return Change{change: "jitter", value: value} }

// Loss sets the ratio of lost packets, such as "1 %".
func Loss(value string) Change { return Change{change: "loss", value: value} }

// Queue sets the length of the queues of both directions, such as "500 kB".
func Queue(value string) Change { return Change{change: "queue", value: value} }

// ImpairDown sets impairments of the downlink, such as "loss: 1 %, delay: 20 ms". The keys are those of
// scenarios.
func ImpairDown(value string) Change { return Change{change: "impair_down", value: value} }

// ImpairUp sets impairments of the uplink, such as "loss: 1 %, delay: 20 ms". The keys are those of
// scenarios.
func ImpairUp(value string) Change { return Change{change: "impair_up", value: value} }

// For returns the change for a time. Then the link becomes as it was.
func (c Change) For(span time.Duration) Change {
	c.span = span
	return c
}

// RoundTripper returns a transport over this link alone, as Lab.RoundTripper does over all links.
func (l *Link) RoundTripper() *http.Transport { return l.lab.transport(l.lab.Proxies[l.Name]) }

// Carried is what a link has carried since the lab's start, with all headers.
type Carried struct {
	// Bytes are those that the client received over the link, as in a run's figures.
	Bytes int64
	// SentBytes are those that the client sent over the link.
	SentBytes int64
}

// Carried returns what the link has carried until now. It waits for a sample, about a second.
func (l *Link) Carried() Carried {
	l.lab.t.Helper()
	found, err := l.lab.control.carried(l.Name)
	if err != nil {
		l.lab.t.Errorf("linklabtest: %s: %v", l.Name, err)
	}
	return found
}

// Set changes properties of the link, one after the other.
func (l *Link) Set(changes ...Change) {
	l.lab.t.Helper()
	for _, one := range changes {
		if err := l.lab.control.change(l.Name, one); err != nil {
			l.lab.t.Errorf("linklabtest: %s: %v", l.Name, err)
		}
	}
}

// Down takes the carrier away for a time. Without a time (0) it is away until Up.
func (l *Link) Down(span time.Duration) {
	l.lab.t.Helper()
	l.Set(Change{change: "down", span: span})
}

// Up gives the carrier back.
func (l *Link) Up() {
	l.lab.t.Helper()
	l.Set(Change{change: "up"})
}

// Outage loses every packet for a time, 3 s if that is 0. The carrier stays.
func (l *Link) Outage(span time.Duration) {
	l.lab.t.Helper()
	l.Set(Change{change: "outage", span: span})
}

// EndOutage lets packets pass again.
func (l *Link) EndOutage() {
	l.lab.t.Helper()
	l.Set(Change{change: "outage", value: "false"})
}

// Handover changes to an access point, or to the next one if the name is "".
func (l *Link) Handover(to string) {
	l.lab.t.Helper()
	l.Set(Change{change: "handover", value: to})
}

// Restore makes the link as the scenario says.
func (l *Link) Restore() {
	l.lab.t.Helper()
	l.Set(Change{change: "restore"})
}

// body returns the change of a link as the lab reads it.
func (c Change) body(link string) map[string]string {
	body := map[string]string{"link": link, "change": c.change}
	if c.value != "" {
		body["value"] = c.value
	}
	if c.span != 0 {
		body["for"] = fmt.Sprintf("%.6f s", c.span.Seconds())
	}
	return body
}
