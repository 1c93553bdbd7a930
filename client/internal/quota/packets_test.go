package quota

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/linklab/linklab/client/internal/link"
)

// datagrams is a socket from which datagrams of a size arrive at once. It counts what is sent.
type datagrams struct{ size, sent int }

func (d *datagrams) Send(_ context.Context, payload []byte, _ string) error {
	d.sent += len(payload)
	return nil
}

func (d *datagrams) Receive([]byte) (int, netip.AddrPort, error) {
	return d.size, netip.AddrPort{}, nil
}
func (*datagrams) Close() error { return nil }

func opened(t *testing.T, l *Link, below link.PacketSocket) link.PacketSocket {
	t.Helper()
	socket, err := l.Packets(func(context.Context) (link.PacketSocket, error) { return below, nil })(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return socket
}

func TestDatagramsCountForTheCap(t *testing.T) {
	below := &datagrams{size: 300}
	l := &Link{Name: "lte", Cap: 1000}
	socket := opened(t, l, below)
	if err := socket.Send(t.Context(), make([]byte, 400), ""); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if n, _, err := socket.Receive(make([]byte, 2000)); n != 300 || err != nil {
			t.Fatal(n, err)
		}
	}
	capped := new(CapError)
	if err := socket.Send(t.Context(), []byte("x"), ""); !errors.As(err, &capped) || below.sent != 400 {
		t.Errorf("%v after %d bytes sent", err, below.sent)
	}
	if _, _, err := socket.Receive(nil); !errors.As(err, &capped) {
		t.Error(err)
	}
	if _, err := l.Packets(nil)(t.Context()); !errors.As(err, &capped) {
		t.Error(err)
	}
}

// A datagram may exceed what the limit lets pass at once.
func TestDatagramsKeepToTheRate(t *testing.T) {
	l := &Link{Name: "lte", Rates: []*rate.Limiter{rate.NewLimiter(100_000, 4096)}}
	socket := opened(t, l, &datagrams{size: 10_000})
	started := time.Now()
	for range 3 {
		if _, _, err := socket.Receive(nil); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(started); took < 250*time.Millisecond || took > 2*time.Second {
		t.Errorf("30 kB take %s at 100 kB/s", took)
	}
	go func() {
		time.Sleep(50 * time.Millisecond)
		socket.Close()
	}()
	l.Rates[0].SetLimit(1)
	if _, _, err := socket.Receive(nil); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}
