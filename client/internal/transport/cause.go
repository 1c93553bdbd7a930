package transport

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// mostDebug limits how much of a GOAWAY's debug data is kept, in bytes.
const mostDebug = 200

// endCause holds why a connection takes no more requests: the first known reason. For
// later requests net/http only says that the connection is unusable.
type endCause struct {
	mu  sync.Mutex
	err error
	// mild is true if the reason is no fault. Then a later reason replaces it.
	mild bool
}

func (c *endCause) is(err error, mild bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil || c.mild && !mild {
		c.err, c.mild = err, mild
	}
}

// get returns the reason, nil while the connection works.
func (c *endCause) get() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// failed records the error of a read or write.
func (c *endCause) failed(err error) {
	switch {
	case errors.Is(err, net.ErrClosed): // This side closed it.
	case err == io.EOF, errors.Is(err, unix.EPIPE):
		c.is(errors.New("the server closed the connection"), true)
	case errors.Is(err, unix.ECONNRESET): // Linux returns this once, to the first read or write.
		c.is(errors.New("the server reset the connection"), false)
	case wantsCertificate(err):
		c.is(certificateRequired{err}, false)
	default: // Such as another TLS alert, in the text of crypto/tls.
		c.is(err, false)
	}
}

// goAway records the content of a GOAWAY (RFC 9113 6.8).
func (c *endCause) goAway(content []byte) {
	if len(content) < goAwayLength {
		return
	}
	code := binary.BigEndian.Uint32(content[4:])
	text := "the server ended the connection with GOAWAY, " + codeName(code)
	if debug := content[goAwayLength:]; len(debug) > 0 {
		text = fmt.Sprintf("%s: %q", text, debug)
	}
	c.is(errors.New(text), code == 0)
}

// reset records a stream's error code after which net/http sends nothing more.
func (c *endCause) reset(code uint32) {
	c.is(errors.New("the server reset a request with "+codeName(code)), false)
}

var errBroken = errors.New("the server broke the rules of HTTP/2")

// broken records the error code with which this side ends the connection.
func (c *endCause) broken(code uint32) {
	if code != 0 {
		c.is(fmt.Errorf("%w: %s", errBroken, codeName(code)), false)
	}
}

// codeName returns the name of an error code (RFC 9113 7).
func codeName(code uint32) string {
	names := []string{
		"NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT",
		"STREAM_CLOSED", "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR",
		"CONNECT_ERROR", "ENHANCE_YOUR_CALM", "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
	}
	if code < uint32(len(names)) {
		return names[code]
	}
	return fmt.Sprintf("the unknown code %#x", code)
}

// vagueMessages holds net/http's messages for a connection that had ended before.
var vagueMessages = []string{
	"http2: client conn not usable",
	"http2: client conn is closed",
	"http2: client conn could not be established",
	"http2: client connection lost",
	"http2: Transport received Server's graceful shutdown GOAWAY",
	"http2: Transport received GOAWAY from server",
}

// explained returns the error of a request, or the cause if the error hides it.
func (c *endCause) explained(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		return nil
	}
	isEnd := errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, unix.EPIPE)
	hides := isEnd && c.err != nil && !c.mild
	for _, text := range vagueMessages {
		hides = hides || strings.Contains(err.Error(), text)
	}
	switch {
	case wantsCertificate(err):
		return certificateRequired{err}
	case !hides:
		return err
	case c.err == nil:
		// net/http itself ended the connection. It tells only the requests in flight why.
		return explainedError{err, errBroken}
	}
	return explainedError{err, c.err}
}

// explainedError is an error with the message of its cause.
type explainedError struct {
	error
	cause error
}

func (e explainedError) Error() string { return e.cause.Error() }

func (e explainedError) Unwrap() []error { return []error{e.cause, e.error} }
