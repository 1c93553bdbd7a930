package cli

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/linklab/linklab/client/tests/testkit"
)

// The types of frames that these servers send (RFC 9113 6).
const (
	dataFrame, headersFrame, resetFrame, settingsFrame, goAwayFrame = 0, 1, 3, 4, 7
)

// goAway returns a GOAWAY with an error code and debug data.
func goAway(code byte, words string) []byte {
	return testkit.Frame(goAwayFrame, 0, append([]byte{0, 0, 0, 0, 0, 0, 0, code}, words...)...)
}

// speakHTTP2 starts an HTTP/2 server. It calls says after the settings of each connection, and
// with each request.
func speakHTTP2(t *testing.T, says func(conn *tls.Conn, requests int)) (url string, flags []string) {
	t.Helper()
	url, flags = serve(t, http.NotFoundHandler())
	from := httptest.NewTLSServer(nil) // All test servers share its certificate.
	defer from.Close()
	config := &tls.Config{Certificates: from.TLS.Certificates, NextProtos: []string{"h2"}}
	address := testkit.Accept(t, config, func(conn net.Conn) {
		if _, err := io.ReadFull(conn, make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
			return
		}
		conn.Write(testkit.Frame(settingsFrame, 0))
		says(conn.(*tls.Conn), 0)
		header := make([]byte, 9)
		for requests := 0; ; {
			if _, err := io.ReadFull(conn, header); err != nil {
				return
			}
			if _, err := io.CopyN(io.Discard, conn, int64(binary.BigEndian.Uint32(header)>>8)); err != nil {
				return
			}
			if header[3] == headersFrame {
				requests++
				says(conn.(*tls.Conn), requests)
			}
		}
	})
	return "https://" + address + "/f", flags
}

// reset closes a connection with a TCP reset, without TLS's close_notify.
func reset(conn *tls.Conn) {
	conn.NetConn().(*net.TCPConn).SetLinger(0)
	conn.NetConn().Close()
}

// end closes a connection after the other end has closed it. Otherwise unread bytes would turn the
// close into a reset.
func end(conn *tls.Conn) {
	conn.CloseWrite()
	below := conn.NetConn().(*net.TCPConn)
	below.CloseWrite()
	io.Copy(io.Discard, below)
	below.Close()
}

// toConnect is how long the commands try. A busy machine may need more than a second for a handshake,
// and until then nobody knows the cause.
const toConnect = "5s"

// The error of a download or upload names the cause of a failure, not its consequences.
func TestErrorsNameTheCause(t *testing.T) {
	for name, test := range map[string]struct {
		says func(conn *tls.Conn, requests int)
		want []string
	}{
		"GOAWAY with words": {func(conn *tls.Conn, requests int) {
			if requests == 1 {
				conn.Write(goAway(11, "too many from you\x1b[2J"))
				end(conn)
			}
		}, []string{"ENHANCE_YOUR_CALM", "too many from you"}},
		"GOAWAY before a request": {func(conn *tls.Conn, requests int) {
			conn.Write(goAway(2, "no room"))
			time.Sleep(20 * time.Millisecond) // The client reads it before the connection ends.
			end(conn)
		}, []string{`INTERNAL_ERROR: "no room"`}},
		"GOAWAY in two steps": {func(conn *tls.Conn, requests int) {
			conn.Write(append(goAway(0, ""), goAway(12, "")...))
			time.Sleep(20 * time.Millisecond) // As above.
			end(conn)
		}, []string{"INADEQUATE_SECURITY"}},
		"error of protocol, the server's": {func(conn *tls.Conn, requests int) {
			if requests > 0 {
				conn.Write(testkit.Frame(resetFrame, uint32(2*requests-1), 0, 0, 0, 1))
			}
		}, []string{"PROTOCOL_ERROR"}},
		"error of protocol, ours": {func(conn *tls.Conn, requests int) {
			conn.Write(testkit.Frame(dataFrame, 0, 1, 2, 3))
		}, []string{"connection error: PROTOCOL_ERROR|the server broke the rules of HTTP/2"}},
		"reset after a request": {func(conn *tls.Conn, requests int) {
			if requests == 1 {
				reset(conn)
			}
		}, []string{"connection reset by peer|the server reset the connection"}},
		"reset before a request": {func(conn *tls.Conn, requests int) { reset(conn) },
			[]string{"connection reset by peer|the server reset the connection"}},
		"end after a request": {func(conn *tls.Conn, requests int) {
			if requests == 1 {
				end(conn)
			}
		}, []string{"unexpected EOF|the server closed the connection"}},
		"end before a request": {func(conn *tls.Conn, requests int) { end(conn) },
			[]string{"EOF|the server closed the connection"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, flags := speakHTTP2(t, test.says)
			own := ownFile(t)
			for _, command := range [][]string{{"get", url, "-o", own + ".copy"}, {"put", own, url}} {
				code, _, stderr := run(append(append(command, flags...), "--link", "lo", "--give-up", toConnect, "--log-level", "error")...)
				testkit.Holds(t, code == 1 && !strings.Contains(stderr, "not usable"), command[0], code, stderr)
				for _, want := range test.want {
					testkit.Holds(t, regexp.MustCompile(want).MatchString(stderr), command[0], want, stderr)
				}
				expectPrintable(t, "stderr", stderr)
			}
		})
	}
}

// ownFile returns the name of a file to upload.
func ownFile(t *testing.T) string {
	t.Helper()
	return written(t, filepath.Join(t.TempDir(), "own"), bytes.Repeat([]byte("x"), 1000))
}

// The same holds for failures before HTTP.
func TestErrorsNameTheCauseBeforeHTTP(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.OK(t, err)
	nobody := closed.Addr().String()
	closed.Close()
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	testkit.OK(t, err)
	noNames := udp.LocalAddr().String()
	udp.Close()
	_, flags := serve(t, http.NotFoundHandler())
	for name, test := range map[string]struct{ url, want string }{
		"nobody listens": {"https://" + nobody + "/f", "connection refused"},
		"no name server": {"https://host.example/f", "lookup host.example on " + noNames + ": "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := ownFile(t)
			for _, command := range [][]string{{"get", test.url, "-o", own + ".copy"}, {"put", own, test.url}} {
				expectFailure(t, 1, test.want, append(append(command, flags...), "--link", "lo", "--dns", noNames, "--give-up", toConnect, "--log-level", "error")...)
			}
		})
	}
}
