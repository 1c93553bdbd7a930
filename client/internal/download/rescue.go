package download

import "time"

const (
	// maxStale is how many bytes of a cancelled body still arrive at most: the server's send
	// queue. With more to come, a connection is not kept in the pool: a new one is made sooner.
	maxStale = 512 << 10

	// A connection is silent when nothing arrived for schedule.FewTrips round trips, and not for
	// transfer.LeastSilence, or for firstSilence if no present request has an answer yet.
	firstSilence = time.Second
	mostSilence  = 10 * time.Second

	// An attempt to connect may take transfer.AttemptTrips round trips and at least
	// leastAttempt, or firstAttempt while no round trip is known. Each next one may take longer.
	leastAttempt = 500 * time.Millisecond
	firstAttempt = 5 * time.Second
	mostAttempt  = 20 * time.Second
	// shortLife is the age up to which a session that the server closes without an answer has
	// failed. An older one was idle.
	shortLife = time.Second
	// longestPause is how long the client waits for bytes of the only answer of a URL.
	longestPause = 20 * time.Second
	// hopeless is how often every link must fail to connect at the beginning before the
	// download fails.
	hopeless = 3
	// mostWhole is how often a server that served ranges may answer with the whole file before
	// the client requests no more ranges.
	mostWhole = 4

	// A connection counts as slow when it was slow for schedule.FewTrips round trips and for leastSlow.
	leastSlow = 500 * time.Millisecond
)

// Reasons of failovers.
const (
	lost     = "lost"
	excluded = "excluded"
	stalled  = "stalled"
	slow     = "slow"
)
