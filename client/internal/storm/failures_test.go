package storm

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/linklab/linklab/client/tests/testkit"
)

// failures are the ways in which a server fails.
var failures = map[string]func(*end){
	"closes at once":  func(e *end) {},
	"resets at once":  func(e *end) { e.reset() },
	"says nothing":    func(e *end) { io.Copy(io.Discard, e) },
	"speaks no TLS":   func(e *end) { io.WriteString(e, "SSH-2.0-OpenSSH_10.0\r\n"); io.Copy(io.Discard, e) },
	"refuses TLS":     func(e *end) { e.Read(make([]byte, 1<<14)); e.Write([]byte{21, 3, 3, 0, 2, 2, 40}) },
	"resets in TLS":   func(e *end) { e.Read(make([]byte, 1<<14)); e.reset() },
	"closes in HTTP":  http1(func(c net.Conn, _ *http.Request) {}),
	"resets in HTTP":  func(e *end) { http1(func(net.Conn, *http.Request) { e.reset() })(e) },
	"silent in HTTP":  http1(func(c net.Conn, _ *http.Request) { io.Copy(io.Discard, c) }),
	"no HTTP":         says("220 mail.example.org ESMTP\r\n\r\n"),
	"bad length":      says("HTTP/1.1 206 Partial Content\r\nContent-Length: many\r\n\r\n"),
	"two lengths":     says("HTTP/1.1 206 Partial Content\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n"),
	"200 and nothing": says("HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: 1000000000\r\n\r\n"),
	"503": http1(func(c net.Conn, _ *http.Request) {
		io.WriteString(c, "HTTP/1.1 503 Busy\r\nContent-Length: 2\r\n\r\nno")
		io.Copy(io.Discard, c)
	}),
	"bad chunks":      says("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nETag: \"1\"\r\n\r\nxyz\r\n"),
	"large header":    endless("HTTP/1.1 200 OK\r\n", "X: "+strings.Repeat("y", 1000)+"\r\n"),
	"endless 103":     endless("", "HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n"),
	"503 and the end": says("HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno"),
	"one byte": http1(func(c net.Conn, r *http.Request) {
		io.WriteString(c, partial(r)+"x")
	}),
	"cuts what HEAD promised": http1(func(c net.Conn, r *http.Request) {
		if r.Method == http.MethodHead {
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: %d\r\n\r\n", size)
		}
	}),
	"GOAWAY at once":         http2(func(w io.Writer, stream uint32) {}, testkit.Frame(7, 0, 0, 0, 0, 0, 0, 0, 0, 0)),
	"PROTOCOL_ERROR at once": http2(func(w io.Writer, stream uint32) {}, testkit.Frame(7, 0, 0, 0, 0, 0, 0, 0, 0, 1)),
	"GOAWAY on a request": http2(func(w io.Writer, stream uint32) {
		w.Write(testkit.Frame(7, 0, 0, 0, 0, 0, 0, 0, 0, 0))
	}),
	"GOAWAY, PROTOCOL_ERROR on a request": http2(func(w io.Writer, stream uint32) {
		w.Write(testkit.Frame(7, 0, 0, 0, 0, 0, 0, 0, 0, 1))
	}),
	"PROTOCOL_ERROR":   http2(func(w io.Writer, stream uint32) { w.Write(testkit.Frame(3, stream, 0, 0, 0, 1)) }),
	"REFUSED_STREAM":   http2(func(w io.Writer, stream uint32) { w.Write(testkit.Frame(3, stream, 0, 0, 0, 7)) }),
	"bad frame":        http2(func(w io.Writer, stream uint32) { w.Write(testkit.Frame(4, stream, 0)) }),
	"silent in HTTP/2": http2(func(w io.Writer, stream uint32) {}),
	"closes in HTTP/2": func(e *end) { http2(func(io.Writer, uint32) { e.Close() })(e) },
}

// size is the size of the file in bytes: more than any test downloads.
const size = 1 << 40

// partial returns the header of the answer to a range.
func partial(r *http.Request) string {
	first, last := int64(0), int64(size-1)
	fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &first, &last)
	last = min(last, size-1)
	return fmt.Sprintf("HTTP/1.1 206 Partial Content\r\nETag: \"1\"\r\nContent-Length: %d\r\nContent-Range: bytes %d-%d/%d\r\n\r\n", last-first+1, first, last, int64(size))
}

func secured(e *end, protocol string) *tls.Conn {
	c := tls.Server(e, &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{protocol}})
	if c.Handshake() != nil {
		return nil
	}
	return c
}

// http1 answers one request, and closes the connection.
func http1(answer func(net.Conn, *http.Request)) func(*end) {
	return func(e *end) {
		c := secured(e, "http/1.1")
		if c == nil {
			return
		}
		if r, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			answer(c, r)
		}
	}
}

func says(text string) func(*end) {
	return http1(func(c net.Conn, _ *http.Request) { io.WriteString(c, text) })
}

func endless(first, then string) func(*end) {
	return http1(func(c net.Conn, _ *http.Request) {
		_, err := io.WriteString(c, first)
		for err == nil {
			_, err = io.WriteString(c, strings.Repeat(then, 100))
		}
	})
}

// http2 begins with SETTINGS and other frames, and answers requests.
func http2(answer func(io.Writer, uint32), begin ...[]byte) func(*end) {
	return func(e *end) {
		c := secured(e, "h2")
		if c == nil {
			return
		}
		c.Write(append(testkit.Frame(4, 0), bytes.Join(begin, nil)...))
		in := bufio.NewReader(c)
		in.Discard(24)
		for {
			var head [9]byte
			if _, err := io.ReadFull(in, head[:]); err != nil {
				return
			}
			in.Discard(int(binary.BigEndian.Uint32(head[:]) >> 8))
			if head[3] == 1 {
				answer(c, binary.BigEndian.Uint32(head[5:]))
			}
		}
	}
}

// works returns a server that serves the file slowly and accepts uploads.
func works(protocols ...string) func(*end) {
	return handles(protocols, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		if r.Method == http.MethodPut {
			piece := make([]byte, 16<<10)
			for {
				time.Sleep(20 * time.Millisecond)
				if _, err := r.Body.Read(piece); err != nil {
					break
				}
			}
			w.WriteHeader(http.StatusCreated)
			return
		}
		http.ServeContent(slowly{w}, r, "", time.Time{}, &zeros{})
	})
}

// handles returns a server that serves HTTP on a connection.
func handles(protocols []string, answer http.HandlerFunc) func(*end) {
	return func(e *end) {
		server := &http.Server{
			Handler: answer, ErrorLog: log.New(io.Discard, "", 0),
			TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: protocols},
		}
		l := testkit.NewListener()
		go l.Offer(&noticed{e, l}, nil)
		server.ServeTLS(l, "", "")
	}
}

type slowly struct{ http.ResponseWriter }

func (s slowly) Write(p []byte) (n int, err error) {
	for err == nil && n < len(p) {
		time.Sleep(100 * time.Millisecond)
		var m int
		m, err = s.ResponseWriter.Write(p[n:min(len(p), n+16<<10)])
		n += m
	}
	return n, err
}

// zeros is the content of the file.
type zeros struct{ at int64 }

func (z *zeros) Read(p []byte) (int, error) {
	n := int(min(int64(len(p)), size-z.at))
	if n == 0 {
		return 0, io.EOF
	}
	clear(p[:n])
	z.at += int64(n)
	return n, nil
}

func (z *zeros) Seek(offset int64, whence int) (int64, error) {
	z.at = offset + map[int]int64{io.SeekCurrent: z.at, io.SeekEnd: size}[whence]
	return z.at, nil
}

// noticed is a connection whose end is that of its listener.
type noticed struct {
	*end
	of *testkit.Listener
}

func (c *noticed) Close() error {
	c.of.Close()
	return c.end.Close()
}
