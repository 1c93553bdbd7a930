package link

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// WirelessFile holds the signal strength of wireless devices in Linux.
const WirelessFile = "/proc/net/wireless"

// Watcher reports changes of a network device.
type Watcher struct {
	Device string
	// WirelessFile has the format of /proc/net/wireless. It may be absent.
	WirelessFile string
}

const (
	// pollInterval is the interval between two checks of the device. They see what the kernel
	// does not announce: everything if netlink is forbidden, as for Android's apps.
	pollInterval = time.Second
	// better is by how many dB the signal must exceed its lowest value since the last report.
	better = 6
)

// Watch reports changes until ctx ends. The kernel announces most of them at once (rtnetlink).
func (w Watcher) Watch(ctx context.Context, report func(Change)) {
	announced, routes := make(chan struct{}, 1), make(chan int, 16)
	if stop, err := listen(announced, routes); err == nil {
		defer stop()
	}
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	state, lowest := stateOf(w.Device), math.Inf(1)
	for {
		routed := false
		select {
		case <-ctx.Done():
			return
		case <-announced:
		case index := <-routes:
			found, err := net.InterfaceByIndex(index)
			if routed = err == nil && found.Name == w.Device; !routed {
				continue
			}
		case <-ticker.C:
		}
		now := stateOf(w.Device)
		switch {
		case state.running && !now.running:
			report(Down)
		case now.running && (routed || !state.running || !slices.Equal(now.ways, state.ways)):
			report(Up)
		}
		state = now
		if level, ok := signal(w.WirelessFile, w.Device); ok {
			lowest = min(lowest, level)
			if level >= lowest+better {
				lowest = level
				report(Better)
			}
		}
	}
}

// state decides whether anything can pass through a device.
type state struct {
	// running is true if the device is up and has a carrier.
	running bool
	// ways holds its index and addresses. A new one may be a new way to the server.
	ways []string
}

// IsRunning reports whether a device is up and has a carrier.
func IsRunning(device string) bool { return stateOf(device).running }

func stateOf(device string) (s state) {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return s
	}
	defer unix.Close(socket)
	request, err := unix.NewIfreq(device)
	if err != nil || unix.IoctlIfreq(socket, unix.SIOCGIFFLAGS, request) != nil {
		return s
	}
	const needed = unix.IFF_UP | unix.IFF_RUNNING
	s.running = request.Uint16()&needed == needed
	if found, err := net.InterfaceByName(device); err == nil {
		s.ways = append(s.ways, strconv.Itoa(found.Index))
		if addresses, err := found.Addrs(); err == nil {
			for _, a := range addresses {
				s.ways = append(s.ways, a.String())
			}
		}
	}
	slices.Sort(s.ways)
	return s
}

// listen sends on announced when the kernel announces a change of a device or an address. It
// sends on routes the index of the device of a new route. stop ends that.
func listen(announced chan<- struct{}, routes chan<- int) (stop func(), err error) {
	socket, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	groups := uint32(unix.RTMGRP_LINK | unix.RTMGRP_IPV4_IFADDR | unix.RTMGRP_IPV6_IFADDR |
		unix.RTMGRP_IPV4_ROUTE | unix.RTMGRP_IPV6_ROUTE)
	if err := unix.Bind(socket, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groups}); err != nil {
		unix.Close(socket)
		return nil, err
	}
	// The runtime's poller reads a non-blocking file, so Close ends the read.
	file := os.NewFile(uintptr(socket), "netlink")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		buffer := make([]byte, 64<<10)
		for {
			n, err := file.Read(buffer)
			if err != nil && !isOverrun(err) {
				return
			}
			changed, led := announcements(buffer[:max(0, n)])
			for _, index := range led {
				select {
				case routes <- index:
				default:
				}
			}
			// Lost announcements (ENOBUFS) count as a change.
			if changed || err != nil {
				select {
				case announced <- struct{}{}:
				default:
				}
			}
		}
	}()
	return func() { file.Close(); <-ended }, nil
}

// announcements parses messages of rtnetlink: whether a device or an address changed, and the
// devices of new routes. It skips local routes, which the kernel adds with each address.
func announcements(messages []byte) (changed bool, led []int) {
	parsed, err := syscall.ParseNetlinkMessage(messages)
	if err != nil {
		return true, nil
	}
	for i := range parsed {
		m := &parsed[i]
		switch m.Header.Type {
		case unix.RTM_NEWROUTE:
			// struct rtmsg: family, destination, source, tos, table (rtnetlink(7)).
			if len(m.Data) < unix.SizeofRtMsg || m.Data[4] == unix.RT_TABLE_LOCAL {
				continue
			}
			attributes, err := syscall.ParseNetlinkRouteAttr(m)
			if err != nil {
				continue
			}
			for _, a := range attributes {
				if a.Attr.Type == unix.RTA_OIF && len(a.Value) == 4 {
					led = append(led, int(binary.NativeEndian.Uint32(a.Value)))
				}
			}
		case unix.RTM_DELROUTE:
		default:
			changed = true
		}
	}
	return changed, led
}

// signal returns the signal level of a device in dB.
func signal(name, device string) (level float64, ok bool) {
	file, err := os.Open(name)
	if err != nil {
		return 0, false
	}
	defer file.Close()
	levels, err := parseWireless(file)
	if err != nil {
		return 0, false
	}
	level, ok = levels[device]
	return level, ok
}

// parseWireless returns the signal levels in /proc/net/wireless. After two lines of headings,
// every device has a line with status, link quality, signal level and noise level:
//
//	wlan0: 0000   54.  -56.  -256        0      0      0      0      0        0
func parseWireless(r io.Reader) (map[string]float64, error) {
	levels := map[string]float64{}
	lines := bufio.NewScanner(r)
	for number := 1; lines.Scan(); number++ {
		if number <= 2 {
			continue
		}
		name, rest, ok := strings.Cut(strings.TrimSpace(lines.Text()), ":")
		fields := strings.Fields(rest)
		if !ok || len(fields) < 3 {
			return nil, fmt.Errorf("line %d: %q: allowed is DEVICE: STATUS QUALITY LEVEL …", number, lines.Text())
		}
		level, err := strconv.ParseFloat(strings.TrimSuffix(fields[2], "."), 64)
		if err != nil || math.IsNaN(level) || math.IsInf(level, 0) {
			return nil, fmt.Errorf("line %d: %q is no signal level", number, fields[2])
		}
		levels[name] = level
	}
	return levels, lines.Err()
}

func isOverrun(err error) bool { return errors.Is(err, unix.ENOBUFS) }
