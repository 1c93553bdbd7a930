package transport

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/linklab/linklab/client/tests/testkit"
)

// readConn reads from elsewhere.
type readConn struct {
	net.Conn
	io.Reader
}

func (c readConn) Read(p []byte) (int, error) { return c.Reader.Read(p) }

// A hello that does not fit into one packet is lost once for all connections that share what is known,
// and for others again.
func TestHellosAreRemembered(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	longs := make(chan bool, 9)
	address := testkit.Accept(t, nil, func(conn net.Conn) {
		record := make([]byte, 5) // Its last two bytes are the length (RFC 8446 5.1).
		if _, err := io.ReadFull(conn, record); err != nil {
			return
		}
		isLong := int(record[3])<<8+int(record[4]) > 1300
		if longs <- isLong; !isLong {
			_ = tls.Server(readConn{conn, io.MultiReader(bytes.NewReader(record), conn)}, server.TLS).Handshake()
		}
	})
	hellos := new(Hellos)
	for i, test := range []struct {
		hellos *Hellos
		longs  []bool
	}{
		{hellos, []bool{true, false}},
		{hellos, []bool{false}},
		{new(Hellos), []bool{true, false}},
		{nil, []bool{true, false}},
	} {
		dial := func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		}
		config := server.Client().Transport.(*http.Transport).TLSClientConfig
		conn, err := Secure(t.Context(), dial, config, test.hellos, address, 10*time.Second)
		testkit.OK(t, err)
		conn.Close()
		var sent []bool
		for len(longs) > 0 {
			sent = append(sent, <-longs)
		}
		testkit.SameList(t, sent, test.longs, i)
	}
}
