package linklabtest

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"time"
)

const (
	ephemeral  = "/proc/sys/net/ipv4/ip_local_port_range"
	lowestPort = 10_000
	endOfPorts = 65_536
	tries      = 1000
)

// freePorts returns the first of count consecutive free ports of the loopback device.
//
// They are below the ports that the kernel gives to outgoing connections. So no such connection can
// take one before the lab listens.
func freePorts(count int) (int, error) {
	end := endOfPorts
	if content, err := os.ReadFile(ephemeral); err == nil {
		var lowest int
		if _, err := fmt.Sscan(string(content), &lowest); err == nil && lowest-count > lowestPort {
			end = lowest
		}
	}
	for range tries {
		if first := lowestPort + rand.IntN(end-count-lowestPort); areFree(first, count) {
			return first, nil
		}
	}
	return 0, fmt.Errorf("no %d consecutive ports of 127.0.0.1 are free", count)
}

func areFree(first, count int) bool {
	for port := first; port < first+count; port++ {
		listener, err := net.Listen("tcp4", local(port))
		if err != nil {
			return false
		}
		if listener.Close() != nil {
			return false
		}
	}
	return true
}

// answers tells whether a proxy answers at a port, by SOCKS5 (RFC 1928).
func answers(port int) bool {
	probe, err := net.DialTimeout("tcp4", local(port), answerTime)
	if err != nil {
		return false
	}
	defer probe.Close()
	welcome := make([]byte, 2)
	if probe.SetDeadline(time.Now().Add(answerTime)) != nil {
		return false
	}
	if _, err := probe.Write([]byte{5, 1, 0}); err != nil {
		return false
	}
	_, err = io.ReadFull(probe, welcome)
	return err == nil && welcome[0] == 5 && welcome[1] == 0
}

func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
