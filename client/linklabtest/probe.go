package linklabtest

import (
	"io"
	"net"
	"strings"
	"time"
)

// answers tells whether the proxy of a URL answers, by SOCKS5 (RFC 1928). While the lab starts, the proxy
// accepts connections but does not answer yet.
func answers(proxy string) bool {
	probe, err := net.DialTimeout("tcp4", strings.TrimPrefix(proxy, "http://"), lookTime)
	if err != nil {
		return false
	}
	defer probe.Close()
	welcome := make([]byte, 2)
	if probe.SetDeadline(time.Now().Add(lookTime)) != nil {
		return false
	}
	if _, err := probe.Write([]byte{5, 1, 0}); err != nil {
		return false
	}
	_, err = io.ReadFull(probe, welcome)
	return err == nil && welcome[0] == 5 && welcome[1] == 0
}
