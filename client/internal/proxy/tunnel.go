package proxy

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"

	"github.com/linklab/linklab/client/internal/link"
)

// tunnel connects the client with a server over one link. The traffic is encrypted, so it cannot
// be split. But programs that cannot use the gateway for https work.
func (p *Proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	if err := mayTunnel(r.Host); err != nil {
		http.Error(w, "multilink: "+err.Error(), http.StatusForbidden)
		return
	}
	server, route, err := p.routes.dial(r.Context(), r.Host)
	if err != nil {
		p.fail(w, r, err)
		return
	}
	defer server.Close()
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		p.fail(w, r, err)
		return
	}
	defer client.Close()
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	p.join(client, buffered, server, route)
}

// join copies bytes between a client and a server until both sides have ended, or the proxy ends.
// It reads the client's bytes from from.
func (p *Proxy) join(client net.Conn, from io.Reader, server net.Conn, route *route) {
	// The client itself may ask whether the server is alive.
	if own, ok := below[*link.Conn](server); ok {
		own.Owes(false)
	}
	// Nothing else ends these connections when the proxy ends.
	defer p.serving.atEnd(func() {
		client.Close()
		server.Close()
	})()
	// A side that has ended may still receive. A side that broke off does not.
	end := func(to net.Conn, err error) {
		if err == nil {
			closeWrite(to)
			return
		}
		client.Close()
		server.Close()
	}
	var both sync.WaitGroup
	both.Go(func() {
		_, err := io.Copy(server, from)
		end(server, err)
	})
	both.Go(func() {
		var answer io.ReadCloser = server
		if p.Count != nil {
			answer = &countedBody{server, route.Name, p.Count}
		}
		_, err := io.CopyBuffer(struct{ io.Writer }{client}, struct{ io.Reader }{answer}, make([]byte, bufferSize))
		end(client, err)
	})
	both.Wait()
}

// closeWrite ends the sending, or closes the connection if it cannot.
func closeWrite(conn net.Conn) {
	if half, ok := conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		return
	}
	conn.Close()
}

// mayTunnel refuses ports below 1024 except https: a tunnel to a mail server could send spam.
func mayTunnel(address string) error {
	_, text, err := net.SplitHostPort(address)
	port, portErr := strconv.ParseUint(text, 10, 16)
	if err != nil || portErr != nil || port != 443 && port < 1024 {
		return fmt.Errorf("CONNECT %s: allowed are HOST:443 and ports from 1024", address)
	}
	return nil
}
