package download

import (
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/transfer"
)

// refusals decides what follows from answers that bring nothing.
type refusals struct{ d *download }

// hasOthers reports whether the link asks for something else meanwhile, on any of its
// connections, or, before the size is known, may get it there.
func (rf *refusals) hasOthers(c *connection, mayOpen bool) bool {
	return slices.ContainsFunc(c.link.connections, func(one *connection) bool {
		return len(one.active) > 0 || mayOpen && one.asking != nil
	})
}

// oneTooMany takes a refusal for one of so many requests at a time, and not of
// the file: others of the link are still served. The last one is believed, and left
// alone for at least so long.
func (rf *refusals) oneTooMany(c *connection, err error, least, now time.Duration) {
	if c.isFirst() || len(c.active) > 0 {
		rf.rest(c, err, least, now)
		return
	}
	c.link.Growth.Lost()
	rf.d.keeper.remove(c, now)
}

// rest leaves the link alone for as long as its failures tell, and at least
// for so long.
func (rf *refusals) rest(c *connection, err error, least, now time.Duration) {
	c.failures++
	rf.pause(c, err, max(least, transfer.Backoff(c.failures)), now)
}

// pause leaves the link alone for so long.
func (rf *refusals) pause(c *connection, err error, pause, now time.Duration) {
	c.notBefore = now + pause
	rf.d.record(now, &rundir.Ban{Link: c.link.Name, Error: err.Error(), Retry: pause.Nanoseconds()})
}
