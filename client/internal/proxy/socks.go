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

// socksWithin limits how long a SOCKS5 client may take for its request.
const socksWithin = 30 * time.Second

// socks serves a SOCKS5 client until its connection ends. It reads from from.
func (p *Proxy) socks(ctx context.Context, client *net.TCPConn, from io.Reader) {
	if !p.serving.begin() {
		return
	}
	defer p.serving.done()
	client.SetDeadline(time.Now().Add(socksWithin))
	command, address, err := socks.Request(client, from, p.mayUse(client.RemoteAddr().String()))
	if err == nil {
		client.SetDeadline(time.Time{})
		if command == socks.Connect {
			err = p.connect(ctx, client, from, address)
		} else {
			err = p.associate(ctx, client, from, command, address)
		}
	}
	if err == nil {
		return
	}
	p.Log.Warn("a connection fails", "address", printable.Quote(address), "error", err)
	reply := socks.ReplyTo(err)
	if errors.Is(err, errLoop) {
		reply = socks.NotAllowed
	}
	socks.Answer(client, reply, nil)
}

// connect joins a client with a server at an address until both have ended.
func (p *Proxy) connect(ctx context.Context, client *net.TCPConn, from io.Reader, address string) error {
	server, by, err := p.routes.dial(ctx, address)
	if err != nil {
		return err
	}
	defer server.Close()
	if err := socks.Answer(client, socks.Done, server.LocalAddr()); err == nil {
		p.join(client, from, server, by)
	}
	return nil
}
