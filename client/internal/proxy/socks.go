package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"github.com/linklab/linklab/client/internal/printable"
	"github.com/linklab/linklab/client/internal/socks"
)

// socksWithin limits how long a SOCKS5 client may take for its request, and a link to connect.
const socksWithin = 30 * time.Second

// socks serves a SOCKS5 client until its connection ends. It reads from from.
func (p *Proxy) socks(ctx context.Context, client *net.TCPConn, from io.Reader) {
	if !p.serving.begin() {
		return
	}
	defer p.serving.done()
	client.SetDeadline(time.Now().Add(socksWithin))
	address, err := socks.Request(client, from, p.mayUse(client.RemoteAddr().String()))
	if err == nil {
		var server net.Conn
		var by *route
		if server, by, err = p.routes.dial(ctx, address); err == nil {
			defer server.Close()
			client.SetDeadline(time.Time{})
			if err := socks.Answer(client, socks.Done, server.LocalAddr()); err == nil {
				p.join(client, from, server, by)
			}
			return
		}
	}
	p.Log.Warn("a connection fails", "address", printable.Quote(address), "error", err)
	reply := socks.ReplyTo(err)
	if errors.Is(err, errLoop) {
		reply = socks.NotAllowed
	}
	socks.Answer(client, reply, nil)
}
