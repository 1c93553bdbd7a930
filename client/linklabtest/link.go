package linklabtest

import (
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
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

// A Change is a change of a link. Its keys and values are those of events in scenarios, such as
// Change{"down": "8 Mbit/s", "impair_up": Change{"loss": "1 %"}}. What it leaves out stays.
type Change map[string]any

// For returns the change for a time. Then the link becomes as it was.
func (c Change) For(span time.Duration) Change {
	made := maps.Clone(c)
	if span != 0 {
		made["for"] = fmt.Sprintf("%.6f s", span.Seconds())
	}
	return made
}

// Rate sets the downlink's rate.
//
// Deprecated: use Change{"down": value}. Rate goes with the next release.
func Rate(value string) Change { return Change{"down": value} }

// Uplink sets the uplink's rate.
//
// Deprecated: use Change{"up": value}. Uplink goes with the next release.
func Uplink(value string) Change { return Change{"up": value} }

// RTT sets the round trip.
func RTT(value string) Change { return Change{"rtt": value} }

// Jitter sets the jitter.
func Jitter(value string) Change { return Change{"jitter": value} }

// Loss sets the ratio of lost packets.
func Loss(value string) Change { return Change{"loss": value} }

// Queue sets the length of the queues of both directions.
func Queue(value string) Change { return Change{"queue": value} }

// ImpairDown sets impairments of the downlink, such as "loss: 1 %, delay: 20 ms".
//
// Deprecated: use Change{"impair_down": Change{"loss": "1 %"}}. ImpairDown goes with the next release.
func ImpairDown(value string) Change { return Change{"impair_down": impairments(value)} }

// ImpairUp sets impairments of the uplink, such as "loss: 1 %, delay: 20 ms".
//
// Deprecated: use Change{"impair_up": Change{"loss": "1 %"}}. ImpairUp goes with the next release.
func ImpairUp(value string) Change { return Change{"impair_up": impairments(value)} }

func impairments(text string) Change {
	made := Change{}
	for part := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(part, ":")
		made[strings.TrimSpace(key)] = strings.TrimSpace(value)
		if is, err := strconv.ParseBool(strings.TrimSpace(value)); err == nil {
			made[strings.TrimSpace(key)] = is
		}
	}
	return made
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
//
// Deprecated: use Set(Change{"carrier": "down"}). Down goes with the next release.
func (l *Link) Down(span time.Duration) {
	l.lab.t.Helper()
	l.lab.t.Log(`linklabtest: Down is now Set(Change{"carrier": "down"})`)
	l.Set(Change{"carrier": "down"}.For(span))
}

// Up gives the carrier back.
//
// Deprecated: use Set(Change{"carrier": "up"}). Up goes with the next release.
func (l *Link) Up() {
	l.lab.t.Helper()
	l.lab.t.Log(`linklabtest: Up is now Set(Change{"carrier": "up"})`)
	l.Set(Change{"carrier": "up"})
}

// Outage loses every packet for a time, 3 s if that is 0. The carrier stays.
func (l *Link) Outage(span time.Duration) {
	l.lab.t.Helper()
	if span == 0 {
		span = 3 * time.Second
	}
	l.Set(Change{"outage": true}.For(span))
}

// EndOutage lets packets pass again.
func (l *Link) EndOutage() {
	l.lab.t.Helper()
	l.Set(Change{"outage": false})
}

// Handover changes to an access point, or to the next one if the name is "".
func (l *Link) Handover(to string) {
	l.lab.t.Helper()
	if to == "" {
		to = "next"
	}
	l.Set(Change{"handover": to})
}

// Restore makes the link as the scenario says.
func (l *Link) Restore() {
	l.lab.t.Helper()
	l.Set(Change{"restore": true})
}
