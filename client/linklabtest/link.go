package linklabtest

import (
	"fmt"
	"maps"
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
