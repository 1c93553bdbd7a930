package soak

import (
	"crypto/tls"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	random "math/rand/v2"
)

// allowed is how many connections a failing server may get in a minute, over all links.
const allowed = 40

// failing is a server that ends each connection in one of some ways, and counts connections.
type failing struct{ accepted atomic.Int64 }

func (f *failing) serve(l net.Listener, config *tls.Config) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		n := f.accepted.Add(1)
		go func() {
			defer conn.Close()
			if n%3 == 0 {
				return
			}
			c := tls.Server(conn, config)
			if c.Handshake() == nil && n%3 == 1 {
				c.Read(make([]byte, 1<<14))
				fmt.Fprint(c, "HTTP/1.1 206 Partial Content\r\nContent-Length: many\r\n\r\n")
			}
		}()
	}
}

// fails runs a command with a failing server, and counts connections.
func (s *soak) fails(f *failing, base string, flags []string, n int, _ *random.Rand) {
	begun, before := time.Now(), f.accepted.Load()
	name := fmt.Sprintf("failing-%d", n)
	file := filepath.Join(s.directory, name)
	code, text := s.call(name, append(append([]string{"get", base + name, "-o", file, "--quiet"}, flags...), "--give-up", "20s")...)
	made, minutes := f.accepted.Load()-before, int64(time.Since(begun)/time.Minute)+1
	if code != 1 || strings.TrimSpace(text) == "" {
		s.t.Errorf("%s: exit code %d: %s", name, code, text)
	}
	if made == 0 || made > allowed*minutes {
		s.t.Errorf("%s: %d connections in %v, at most %d a minute are allowed", name, made, time.Since(begun), allowed)
	}
	s.remove(file)
}
