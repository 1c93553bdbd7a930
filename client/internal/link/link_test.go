package link

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/linklab/linklab/client/internal/block"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/tests/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair returns a Conn through the loopback device, and the server's end of it.
func pair(t *testing.T) (*Conn, *net.TCPConn) {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	testkit.OK(t, err)
	defer listener.Close()
	socket, err := Dialer{Device: "lo"}.Dial(t.Context(), listener.Addr().String())
	testkit.OK(t, err)
	t.Cleanup(func() { socket.Close() })
	server, err := listener.Accept()
	testkit.OK(t, err)
	t.Cleanup(func() { server.Close() })
	return socket.(*Conn), server.(*net.TCPConn)
}

// send writes to either end of a connection.
func send(t *testing.T, to net.Conn, p []byte) {
	t.Helper()
	if _, err := to.Write(p); err != nil {
		t.Fatal(err)
	}
}

// With delayed acknowledgements TCP_QUICKACK is not set.
func TestFewAcksAreSent(t *testing.T) {
	for _, few := range []bool{false, true} {
		c, server := pair(t)
		c.reader.fewAcks = few
		send(t, server, noise(100_000))
		if _, err := c.Read(make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		quick, err := unix.GetsockoptInt(descriptor(t, c), unix.IPPROTO_TCP, unix.TCP_QUICKACK)
		testkit.Holds(t, err == nil && quick == 0 == few, few, quick, err)
	}
}

// noise returns n bytes without a pattern.
func noise(n int) []byte {
	content := make([]byte, n)
	source := rand.NewChaCha8([32]byte{2})
	source.Read(content)
	return content
}

// Bytes arrive unchanged with any Await and any sizes of writes and reads.
func TestBytesArriveInOrder(t *testing.T) {
	content := noise(8 << 20)
	for name, await := range map[string]func(c *Conn, left quantity.Bytes, random *rand.Rand){
		"nothing awaited": func(*Conn, quantity.Bytes, *rand.Rand) {},
		"end awaited":     func(c *Conn, left quantity.Bytes, _ *rand.Rand) { c.Await(left, left) },
		"decisions awaited": func(c *Conn, left quantity.Bytes, random *rand.Rand) {
			c.Await(quantity.Bytes(random.Int64N(int64(left)+1)), left)
		},
		"too much awaited": func(c *Conn, left quantity.Bytes, _ *rand.Rand) { c.Await(left+1<<20, left+1<<20) },
	} {
		t.Run(name, func(t *testing.T) {
			c, server := pair(t)
			go func() {
				random := rand.New(rand.NewPCG(3, 4))
				for rest := content; len(rest) > 0; {
					n := min(len(rest), 1+random.IntN(300_000))
					if _, err := server.Write(rest[:n]); err != nil {
						return
					}
					rest = rest[n:]
				}
				server.CloseWrite()
			}()
			random := rand.New(rand.NewPCG(5, 6))
			var got []byte
			for {
				await(c, quantity.Bytes(len(content)-len(got)), random)
				p := make([]byte, 1+random.IntN(100_000))
				n, err := c.Read(p)
				got = append(got, p[:n]...)
				if err == io.EOF {
					break
				}
				testkit.OK(t, err)
			}
			testkit.SameList(t, got, content)
		})
	}
}

// A connection that waits for bytes holds no block.
func TestMemoryIsHeldWhileDataAreUnread(t *testing.T) {
	c, server := pair(t)
	send(t, server, noise(1000))
	p := make([]byte, 600)
	if n, err := c.Read(p); n != 600 || err != nil || c.reader.block == nil {
		t.Fatalf("read %d bytes, %v, block %p, want 600 and a block with the rest", n, err, c.reader.block)
	}
	if n, err := c.Read(p); n != 400 || err != nil || c.reader.block != nil {
		t.Fatalf("read %d bytes, %v, block %p, want 400 and no block", n, err, c.reader.block)
	}
	if n, err := c.reader.read(uintptr(descriptor(t, c))); n != 0 || err != unix.EAGAIN || c.reader.block != nil {
		t.Fatalf("read %d bytes, %v, block %p of a socket that holds nothing", n, err, c.reader.block)
	}
	server.Close()
	if _, err := c.Read(p); err != io.EOF || c.reader.block != nil {
		t.Fatalf("%v, block %p at the end", err, c.reader.block)
	}
}

// descriptor returns the file descriptor of the connection's socket.
func descriptor(t *testing.T, c *Conn) (number int) {
	t.Helper()
	testkit.OK(t, c.wires.now.Load().raw.Control(func(fd uintptr) { number = int(fd) }))
	return number
}

// readable starts a read and returns a channel for the number of bytes read.
func readable(c *Conn) <-chan int {
	done := make(chan int, 1)
	go func() {
		n, _ := c.Read(make([]byte, block.Size))
		done <- n
	}()
	return done
}

// flow makes the connection read in batches: bytes flow and many are awaited.
func flow(t *testing.T, c *Conn, server net.Conn) {
	t.Helper()
	c.Await(1<<30, 1<<30)
	send(t, server, []byte("first"))
	if n := <-readable(c); n != 5 {
		t.Fatalf("the first read returned %d bytes, want 5", n)
	}
}

func TestBatchEndsTheWait(t *testing.T) {
	c, server := pair(t)
	flow(t, c, server)
	done := readable(c)
	for range 2 {
		send(t, server, make([]byte, maxBatch/2))
	}
	if n := <-done; n < maxBatch/2 {
		t.Errorf("a read returned %d bytes of a batch of %d", n, maxBatch)
	}
}

// Less than a batch waits for patience, and not longer.
func TestPatienceEndsTheWait(t *testing.T) {
	c, server := pair(t)
	flow(t, c, server)
	for range 3 {
		send(t, server, []byte("little"))
		select {
		case n := <-readable(c):
			if n != 6 {
				t.Fatalf("a read returned %d bytes, want 6", n)
			}
		case <-time.After(time.Minute):
			t.Fatal("little data are not read")
		}
	}
}

// When a flow stops, the wait has no deadline. The next byte is read at once.
func TestFlowThatStopsAndGoesOn(t *testing.T) {
	c, server := pair(t)
	flow(t, c, server)
	done := readable(c)
	marked := func() int {
		c.reader.mu.Lock()
		defer c.reader.mu.Unlock()
		return c.reader.mark
	}
	testkit.Eventually(t, "there is no low-water mark while nothing comes", func() bool { return marked() == 0 })
	send(t, server, []byte("again"))
	testkit.Same(t, <-done, 5)
	testkit.Holds(t, marked() != 0, "data flow again and are not read in batches")
}

// The last bytes wake a reader that waits for a batch.
func TestEndOfRequestsEndsTheWait(t *testing.T) {
	c, server := pair(t)
	flow(t, c, server)
	done := readable(c)
	send(t, server, []byte("last"))
	c.Await(4, 4)
	testkit.Same(t, <-done, 4)
	send(t, server, []byte("more"))
	testkit.Same(t, <-readable(c), 4)
}

func TestCloseEndsTheWait(t *testing.T) {
	for _, batching := range []bool{false, true} {
		c, server := pair(t)
		if batching {
			flow(t, c, server)
		}
		failed := make(chan error)
		go func() {
			_, err := c.Read(make([]byte, 1))
			failed <- err
		}()
		time.Sleep(patience / 2) // The read waits by then.
		c.Close()
		if err := <-failed; !errors.Is(err, net.ErrClosed) {
			t.Errorf("batching %v: a read of a closed connection returns %v", batching, err)
		}
	}
}

func TestServerEndsWhileBatching(t *testing.T) {
	c, server := pair(t)
	flow(t, c, server)
	send(t, server, []byte("last"))
	server.Close()
	got, err := io.ReadAll(c)
	testkit.Holds(t, string(got) == "last" && err == nil, got, err)
}

func TestResetIsReported(t *testing.T) {
	c, server := pair(t)
	flow(t, c, server)
	testkit.OK(t, server.SetLinger(0))
	server.Close()
	_, err := c.Read(make([]byte, 1))
	var operation *net.OpError
	testkit.Holds(t, errors.As(err, &operation) && operation.Op == "read" && strings.Contains(err.Error(), "connection reset by peer"), err)
}

func TestReadDeadlinesAreRefused(t *testing.T) {
	c, _ := pair(t)
	testkit.Holds(t, c.SetReadDeadline(time.Now()) != nil && c.SetDeadline(time.Now()) != nil, "a read deadline is accepted, and would be lost")
}

func TestRoundTripIsMeasured(t *testing.T) {
	c, server := pair(t)
	go io.Copy(server, server)
	deadline := time.Now().Add(time.Minute)
	for {
		send(t, c, make([]byte, 1000))
		if _, err := c.Read(make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		rtt, err := c.RoundTrip()
		testkit.OK(t, err)
		if rtt.Min > 0 && rtt.Min < time.Second && rtt.Last > 0 && rtt.Last < time.Second {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the round trip time on loopback is %+v", rtt)
		}
	}
	if rtt, err := c.RoundTrip(); err != nil || rtt.Segments == 0 || rtt.OutOfOrder != 0 {
		t.Errorf("after an answer loopback has brought %+v (%v)", rtt, err)
	}
	c.Close()
	if rtt, err := c.RoundTrip(); err == nil {
		t.Errorf("a closed connection has the round trip time %+v", rtt)
	}
}

// The other end's kernel answers, not its program.
func TestAnswered(t *testing.T) {
	c, server := pair(t)
	send(t, c, []byte("heard"))
	testkit.Eventually(t, "what was sent is acknowledged", func() bool {
		_, all, err := c.Answered()
		return all && err == nil
	})
	deafen(t, server)
	send(t, c, []byte("lost"))
	const wait = 100 * time.Millisecond // An acknowledgement would be here by then.
	time.Sleep(wait)
	if ago, all, err := c.Answered(); all || ago < wait || err != nil {
		t.Errorf("all is acknowledged: %v, the last time %v ago, %v, though the last bytes were lost", all, ago, err)
	}
	c.Close()
	if _, _, err := c.Answered(); err == nil {
		t.Error("a closed connection tells what is acknowledged")
	}
}

// RoundTrip also returns how many bytes the other end's kernel has acknowledged.
func TestTheRoundTripOfWhatWasSent(t *testing.T) {
	c, _ := pair(t)
	before, err := c.RoundTrip()
	testkit.OK(t, err)
	send(t, c, make([]byte, 1000))
	testkit.Eventually(t, "the round trip is measured", func() bool {
		rtt, err := c.RoundTrip()
		testkit.OK(t, err)
		return rtt.Acknowledged == before.Acknowledged+1000 && rtt.Sending > 0
	})
}

// With FillSegments a small segment waits for further bytes while others are in flight.
func TestFillSegments(t *testing.T) {
	for _, always := range []bool{true, false} {
		c, server := pair(t)
		testkit.OK(t, c.FillSegments(always))
		deafen(t, server) // What is sent stays in flight.
		for range 2 {
			send(t, c, []byte("small"))
		}
		info, err := c.wires.now.Load().info()
		testkit.OK(t, err)
		testkit.Same(t, info.Notsent_bytes > 0, always, info.Notsent_bytes)
	}
}

// A closed connection sends nothing more.
func TestDiscardUnsent(t *testing.T) {
	c, server := pair(t)
	testkit.OK(t, c.DiscardUnsent())
	send(t, c, []byte("x"))
	c.Close()
	testkit.OK(t, server.SetReadDeadline(time.Now().Add(10*time.Second)))
	if _, err := io.ReadAll(server); !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("the other end sees %v, not a reset", err)
	}
}

// deafen drops all that arrives, as a dead link does.
func deafen(t *testing.T, conn *net.TCPConn) {
	t.Helper()
	raw, err := conn.SyscallConn()
	testkit.OK(t, err)
	drop := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K}}
	var filterErr error
	if err := raw.Control(func(fd uintptr) {
		filterErr = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &drop[0]})
	}); err != nil || filterErr != nil {
		t.Fatal(err, filterErr)
	}
}

func TestDialIsBoundToTheDevice(t *testing.T) {
	port := listening(t, "127.0.0.1")
	socket, err := Dialer{Device: "lo"}.Dial(t.Context(), "localhost:"+port)
	if err != nil {
		t.Fatalf("a host name through lo: %v", err)
	}
	socket.Close()
	if _, err := (Dialer{Device: "nodevice"}).Dial(t.Context(), "127.0.0.1:"+port); err == nil || !strings.Contains(err.Error(), "bind to device nodevice") {
		t.Errorf("a device that does not exist: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (Dialer{Device: "lo"}).Dial(ctx, "127.0.0.1:"+port); err == nil {
		t.Error("a cancelled dial succeeds")
	}
}

func TestCheckDevice(t *testing.T) {
	if err := CheckDevice("lo"); err != nil {
		t.Error(err)
	}
	err := CheckDevice("wlan7")
	testkit.Holds(t, err != nil && strings.Contains(err.Error(), `no network device "wlan7"`) && strings.Contains(err.Error(), "lo"), err)
}

// After CloseWrite the answer can still be read.
func TestCloseWriteLeavesTheAnswer(t *testing.T) {
	c, server := pair(t)
	go func() {
		io.Copy(server, server)
		server.CloseWrite()
	}()
	send(t, c, []byte("question"))
	testkit.OK(t, c.CloseWrite())
	if got, err := io.ReadAll(c); string(got) != "question" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
}

// keepAlive returns how long a connection may be silent before TCP sends a keep-alive probe, 0
// if it sends none.
func keepAlive(t *testing.T, c *Conn) (idle time.Duration) {
	t.Helper()
	testkit.OK(t, c.wires.now.Load().raw.Control(func(fd uintptr) {
		asks, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_KEEPALIVE)
		seconds, idleErr := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_KEEPIDLE)
		testkit.Holds(t, err == nil && idleErr == nil, err, idleErr)
		idle = time.Duration(asks*seconds) * time.Second
	}))
	return idle
}

// An idle connection sends no keep-alive probes.
func TestOnlyWhoOwesSomethingIsAskedWhetherItIsThere(t *testing.T) {
	c, _ := pair(t)
	testkit.Same(t, keepAlive(t, c), 15*time.Second)
	testkit.OK(t, c.AskSoon(5*time.Second))
	var patience int
	if err := c.wires.now.Load().raw.Control(func(fd uintptr) {
		patience, _ = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
	}); err != nil || patience != 10_000 {
		t.Errorf("unacknowledged data waits for %d ms, %v", patience, err)
	}
	for _, something := range []bool{true, false, false, true} {
		c.Owes(something)
		if got := keepAlive(t, c); (got > 0) != something || something && got != 5*time.Second {
			t.Errorf("after %v, owed: %v", got, something)
		}
	}
}
