// Fetch downloads a file by HTTP/3, its parts at the same time: each over a network device, or through
// a SOCKS5 proxy. It prints the digest of the file, and how it got each part.
package main

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

func main() {
	log.SetFlags(0)
	ca := flag.String("ca", "", "file with the certificate authority")
	over := flag.String("over", "", "devices or proxies (socks5://HOST:PORT), with commas between")
	size := flag.Int("size", 0, "size of the file in bytes")
	flag.Parse()
	roots := x509.NewCertPool()
	authority, err := os.ReadFile(*ca)
	if err != nil || !roots.AppendCertsFromPEM(authority) {
		log.Fatal(*ca, ": no certificate: ", err)
	}
	ways := strings.Split(*over, ",")
	parts, errs := make([][]byte, len(ways)), make([]error, len(ways))
	var all sync.WaitGroup
	for i, way := range ways {
		all.Go(func() {
			first, end := *size*i/len(ways), *size*(i+1)/len(ways)
			started := time.Now()
			var protocol string
			parts[i], protocol, errs[i] = fetch(way, flag.Arg(0), roots, first, end-1)
			fmt.Printf("%s: %d bytes, %s, %.3f s\n", way, len(parts[i]), protocol, time.Since(started).Seconds())
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		log.Fatal(err)
	}
	digest := sha256.New()
	for _, part := range parts {
		digest.Write(part)
	}
	fmt.Printf("%x\n", digest.Sum(nil))
}

// fetch returns the bytes first to last of a file.
func fetch(way, url string, roots *x509.CertPool, first, last int) (part []byte, protocol string, err error) {
	socket, err := open(way)
	if err != nil {
		return nil, "", err
	}
	defer socket.Close()
	transport := &quic.Transport{Conn: socket}
	defer transport.Close()
	by := &http3.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots},
		Dial: func(ctx context.Context, address string, tlsConfig *tls.Config, config *quic.Config) (*quic.Conn, error) {
			to, err := net.ResolveUDPAddr("udp4", address)
			if err != nil {
				return nil, err
			}
			return transport.DialEarly(ctx, to, tlsConfig, config)
		},
	}
	defer by.Close()
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return nil, "", err
	}
	request.Header.Set("Range", "bytes="+strconv.Itoa(first)+"-"+strconv.Itoa(last))
	response, err := by.RoundTrip(request)
	if err != nil {
		return nil, "", err
	}
	defer response.Body.Close()
	part, err = io.ReadAll(response.Body)
	return part, response.Proto, err
}

// open opens a socket for datagrams.
func open(way string) (net.PacketConn, error) {
	if proxy, ok := strings.CutPrefix(way, "socks5://"); ok {
		return associate(proxy)
	}
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		controlErr := c.Control(func(fd uintptr) { err = syscall.BindToDevice(int(fd), way) })
		return errors.Join(err, controlErr)
	}}
	return config.ListenPacket(context.Background(), "udp4", ":0")
}

// association is a UDP association of SOCKS5 (RFC 1928 7), with IPv4 addresses only. It does not show
// its socket's other methods, which quic-go would use.
type association struct {
	net.Conn
	tcp net.Conn
}

func associate(proxy string) (net.PacketConn, error) {
	tcp, err := net.Dial("tcp4", proxy)
	if err != nil {
		return nil, err
	}
	reply := make([]byte, 12)
	io.WriteString(tcp, "\x05\x01\x00\x05\x03\x00\x01\x00\x00\x00\x00\x00\x00")
	if _, err := io.ReadFull(tcp, reply); err != nil {
		return nil, err
	}
	if reply[3] != 0 {
		return nil, fmt.Errorf("%s refuses an association: %d", proxy, reply[3])
	}
	at := netip.AddrPortFrom(netip.AddrFrom4([4]byte(reply[6:10])), binary.BigEndian.Uint16(reply[10:]))
	udp, err := net.Dial("udp4", at.String())
	if err != nil {
		return nil, err
	}
	return &association{udp, tcp}, nil
}

func (a *association) WriteTo(p []byte, to net.Addr) (int, error) {
	at := to.(*net.UDPAddr)
	header := append([]byte{0, 0, 0, 1}, at.IP.To4()...)
	header = binary.BigEndian.AppendUint16(header, uint16(at.Port))
	_, err := a.Write(append(header, p...))
	return len(p), err
}

func (a *association) ReadFrom(p []byte) (int, net.Addr, error) {
	const headerLength = 10
	buffer := make([]byte, headerLength+len(p))
	n, err := a.Read(buffer)
	if err != nil || n < headerLength {
		return 0, nil, err
	}
	from := &net.UDPAddr{IP: net.IP(buffer[4:8]), Port: int(binary.BigEndian.Uint16(buffer[8:10]))}
	return copy(p, buffer[headerLength:n]), from, nil
}

func (a *association) Close() error {
	return errors.Join(a.Conn.Close(), a.tcp.Close())
}
