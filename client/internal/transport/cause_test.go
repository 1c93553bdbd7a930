package transport

import (
	"errors"
	"io"
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/linklab/linklab/client/tests/testkit"
)

// The first reason stays, unless it is no fault and another one follows.
func TestTheCauseOfAnEnd(t *testing.T) {
	unusable := errors.New("http2: client conn not usable")
	for name, test := range map[string]struct {
		happens func(*endCause)
		err     error
		want    string
	}{
		"works":                  {func(*endCause) {}, errors.New("stream error"), "stream error"},
		"broken, not told":       {func(*endCause) {}, unusable, "the server broke the rules of HTTP/2"},
		"broken, told":           {func(c *endCause) { c.broken(1) }, unusable, "the server broke the rules of HTTP/2: PROTOCOL_ERROR"},
		"end":                    {func(c *endCause) { c.failed(io.EOF) }, unusable, "the server closed the connection"},
		"reset":                  {func(c *endCause) { c.failed(unix.ECONNRESET); c.failed(io.EOF) }, unusable, "the server reset the connection"},
		"reset, noticed late":    {func(c *endCause) { c.failed(unix.EPIPE); c.failed(unix.ECONNRESET) }, unusable, "the server reset the connection"},
		"alert":                  {func(c *endCause) { c.failed(errors.New("remote error: tls: certificate required")) }, unusable, "remote error: tls: certificate required"},
		"closed by this side":    {func(c *endCause) { c.is(errClosed, true); c.failed(net.ErrClosed) }, unusable, "the connection was closed by this side"},
		"GOAWAY":                 {func(c *endCause) { c.goAway([]byte{0, 0, 0, 1, 0, 0, 0, 0}) }, unusable, "the server ended the connection with GOAWAY, NO_ERROR"},
		"GOAWAY with debug data": {func(c *endCause) { c.goAway([]byte("\x00\x00\x00\x01\x00\x00\x00\x0b\x1bslow")) }, unusable, `the server ended the connection with GOAWAY, ENHANCE_YOUR_CALM: "\x1bslow"`},
		"unknown code":           {func(c *endCause) { c.goAway([]byte{0, 0, 0, 1, 0, 0, 1, 0}) }, unusable, "the server ended the connection with GOAWAY, the unknown code 0x100"},
		"too short":              {func(c *endCause) { c.goAway([]byte{0, 0, 0, 1}) }, unusable, "the server broke the rules of HTTP/2"},
		"two steps":              {func(c *endCause) { c.goAway(make([]byte, 8)); c.goAway([]byte{0, 0, 0, 1, 0, 0, 0, 2}) }, unusable, "the server ended the connection with GOAWAY, INTERNAL_ERROR"},
		"body cut by a reset":    {func(c *endCause) { c.failed(unix.ECONNRESET) }, io.ErrUnexpectedEOF, "the server reset the connection"},
		"body too short":         {func(c *endCause) { c.failed(io.EOF) }, io.ErrUnexpectedEOF, "unexpected EOF"},
	} {
		c := new(endCause)
		test.happens(c)
		got := c.explained(test.err)
		testkit.Holds(t, got.Error() == test.want && errors.Is(got, test.err), name, got, test.want)
	}
	if err := new(endCause).explained(nil); err != nil {
		t.Error(err)
	}
}

// A GOAWAY is parsed in any division into reads, with as much debug data as is kept.
func TestGoAwayDebugData(t *testing.T) {
	long := make([]byte, 70_000)
	for i := range long {
		long[i] = 'x'
	}
	for _, words := range []string{"", "go", string(long)} {
		for _, size := range []int{1, 3, 64, 1 << 20} {
			var r recorder
			r.Write(testkit.Frame(frameGoAway, 0, append([]byte{0, 0, 0, 1, 0, 0, 0, 2}, words...)...))
			r.Write(testkit.Frame(frameData, 1, make([]byte, 5)...))
			cause := new(endCause)
			c := newDataCounter(&r, newBacklog(), cause)
			for {
				if n, err := c.Read(make([]byte, size)); n == 0 || err != nil {
					break
				}
			}
			want := "the server ended the connection with GOAWAY, INTERNAL_ERROR"
			if kept := words[:min(len(words), mostDebug)]; kept != "" {
				want += `: "` + kept + `"`
			}
			if got := cause.get(); got == nil || got.Error() != want || c.data.Load() != 5 {
				t.Errorf("%d bytes of words, reads of %d: %.300v, %d bytes of bodies", len(words), size, got, c.data.Load())
			}
		}
	}
}
