package transport

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/sys/unix"
)

// MendedConn is a connection that mends heads of HTTP/1 answers which net/http alone refuses. curl and
// browsers accept these heads. A head is the status line with the header. Bodies stay as they are.
type MendedConn struct {
	net.Conn
	mender headMender
}

// NewMendedConn returns a connection for net/http. Paced tells it which bytes are a head.
func NewMendedConn(conn net.Conn) *MendedConn { return &MendedConn{Conn: conn} }

func (c *MendedConn) Read(p []byte) (int, error) { return c.mender.read(p, c.Conn.Read) }

// NetConn returns the connection below.
func (c *MendedConn) NetConn() net.Conn { return c.Conn }

// awaitHead tells a connection that a request takes it. The next bytes are the head of an answer.
func awaitHead(conn net.Conn) {
	switch mended := conn.(type) {
	case *http1Conn:
		mended.mender.awaited.Store(true)
	case *MendedConn:
		mended.mender.awaited.Store(true)
	}
}

// headMender mends heads in what one reader reads.
type headMender struct {
	// awaited is true from the beginning of a request until the final head has arrived.
	awaited atomic.Bool
	// partial is the beginning of a head. ready is what the reader gets next, and err what it gets then.
	partial, ready []byte
	err            error
}

func (m *headMender) read(p []byte, from func([]byte) (int, error)) (int, error) {
	for len(m.ready) == 0 {
		if err := m.err; err != nil {
			m.err = nil
			return 0, err
		}
		n, err := from(p)
		if !m.awaited.Load() && len(m.partial) == 0 {
			return n, err
		}
		searched := max(0, len(m.partial)-len("\n\r"))
		m.partial, m.err = append(m.partial, p[:n]...), err
		m.take(searched)
	}
	n := copy(p, m.ready)
	m.ready = m.ready[n:]
	return n, nil
}

// take makes heads ready that are complete. Before searched no head ends. What cannot be the beginning
// of a head is left to net/http.
func (m *headMender) take(searched int) {
	m.partial = bytes.TrimLeft(m.partial, "\r\n") // Chrome skips it, too.
	for m.awaited.Load() && len(m.partial) > 0 {
		const protocol = "HTTP/"
		begin := min(len(m.partial), len(protocol))
		isHead := bytes.EqualFold(m.partial[:begin], []byte(protocol[:begin]))
		end := headEnd(m.partial, min(searched, len(m.partial)))
		if end == 0 && m.err == nil && isHead && len(m.partial) <= mostHeader {
			return
		}
		if end == 0 || !isHead {
			m.awaited.Store(false)
			break
		}
		head, isInterim := mendHead(m.partial[:end])
		m.ready = append(m.ready, head...)
		m.partial, searched = m.partial[end:], 0
		m.awaited.Store(isInterim)
	}
	if !m.awaited.Load() || m.err != nil {
		m.ready, m.partial = append(m.ready, m.partial...), nil
	}
}

// headEnd returns the length of the head with its empty line, 0 if it is incomplete.
func headEnd(text []byte, from int) int {
	for i := from; i < len(text); i++ {
		if text[i] != '\n' {
			continue
		}
		if rest := bytes.TrimPrefix(text[i+1:], []byte("\r")); len(rest) > 0 && rest[0] == '\n' {
			return len(text) - len(rest) + 1
		}
	}
	return 0
}

// mendHead returns a head as net/http accepts it, and whether another head follows (RFC 9110 15.2).
func mendHead(head []byte) (mended []byte, isInterim bool) {
	lines := bytes.SplitAfter(head, []byte("\n"))
	copy(lines[0], bytes.ToUpper(lines[0][:len("HTTP")]))
	_, code, _ := bytes.Cut(lines[0], []byte(" "))
	code = bytes.TrimLeft(code, " ")
	isInterim = len(code) >= 3 && code[0] == '1' && string(code[:3]) != "101"
	dropped := false
	for i, line := range lines[1:] {
		if len(line) > 0 && (line[0] == ' ' || line[0] == '\t') { // It continues the field before it.
			if dropped = dropped || i == 0; dropped {
				lines[i+1] = nil
			} else {
				lines[i+1] = mendValue(line)
			}
			continue
		}
		lines[i+1] = mendField(line)
		dropped = lines[i+1] == nil
	}
	return bytes.Join(lines, nil), isInterim
}

// mendField returns the line of a field, nil for none. A line without a colon, or with NUL, stays as it is.
func mendField(line []byte) []byte {
	name, value, ok := bytes.Cut(line, []byte(":"))
	if !ok || bytes.IndexByte(line, 0) >= 0 {
		return line
	}
	name = bytes.TrimRight(name, " \t")
	if !httpguts.ValidHeaderFieldName(string(name)) {
		return nil
	}
	text := strings.TrimSpace(string(value))
	switch strings.ToLower(string(name)) {
	case "transfer-encoding":
		if strings.EqualFold(text, "identity") {
			return nil // RFC 2616 3.6.
		}
	case "content-length":
		// A list of one number is that number (RFC 9110 8.6).
		numbers := strings.Split(text, ",")
		length, err := strconv.ParseUint(strings.TrimPrefix(strings.TrimSpace(numbers[0]), "+"), 10, 63)
		for _, other := range numbers {
			if err == nil && strings.TrimSpace(other) == strings.TrimSpace(numbers[0]) {
				value = []byte(" " + strconv.FormatUint(length, 10) + "\r\n")
				continue
			}
			value = []byte(" " + text + "\r\n") // net/http refuses it.
			break
		}
	}
	return bytes.Join([][]byte{name, mendValue(value)}, []byte(":"))
}

// mendValue replaces control characters by spaces, but not NUL (RFC 9110 5.5).
func mendValue(value []byte) []byte {
	end := len(bytes.TrimRight(value, "\r\n"))
	for i, c := range value[:end] {
		if c > 0 && c < ' ' && c != '\t' || c == 0x7f {
			value[i] = ' '
		}
	}
	return value
}

// headError is an answer that is no HTTP/1. Another request would get the same.
type headError struct{ error }

func (e headError) Error() string { return "the server's answer is no HTTP: " + e.error.Error() }

func (e headError) Unwrap() error { return e.error }

func (headError) Permanent() bool { return true }

// brokenHead is how net/http begins its error for an answer that it does not understand, and for a
// connection that ends before an answer.
const brokenHead = "net/http: HTTP/1.x transport connection broken: "

// asHeadError tells the error of an answer that is no HTTP from that of a connection.
func asHeadError(err error) error {
	below := errors.Unwrap(err)
	if err == nil || below == nil || !strings.HasPrefix(err.Error(), brokenHead) {
		return err
	}
	isConnection := errors.Is(below, io.EOF) || errors.Is(below, io.ErrUnexpectedEOF) || errors.Is(below, net.ErrClosed) ||
		errors.As(below, new(net.Error)) || errors.As(below, new(unix.Errno))
	if isConnection {
		return err
	}
	return headError{below}
}
