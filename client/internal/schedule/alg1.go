package schedule

// Alg1 shares a static upper limit among the links in proportion to their
// throughput (thesis 4.3.3).
type Alg1 struct {
	// UpperLimit is U, the bytes shared by one request of every link.
	UpperLimit int64
	// FirstRequests is the sum of the first requests of all links in bytes.
	FirstRequests int64
}

// Next returns s_x = U · r_x/Σr (thesis figures 4.5 and 4.6).
func (a Alg1) Next(x int, known Known) int64 {
	l := known.Links[x]
	if l.Requests == 0 {
		return initialShare(x, a.FirstRequests, len(known.Links))
	}
	total := totalThroughput(known.Links)
	if total == 0 {
		return MinimumRequest
	}
	return requestSize(float64(a.UpperLimit) * l.Throughput / total)
}
