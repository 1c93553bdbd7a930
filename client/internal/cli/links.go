package cli

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/transfer"
)

// parseLinks returns the links of the flags. They are watched if rescue is to know what happens to their devices.
func (f *engineFlags) parseLinks(watches bool) (links []transfer.Link, err error) {
	if len(f.links) == 0 {
		return nil, errors.New("at least one --link is needed, as NAME=DEVICE or DEVICE")
	}
	for _, text := range f.links {
		name, device, ok := strings.Cut(text, "=")
		if !ok {
			device = name
		}
		if name == "" || device == "" || !utf8.ValidString(name) {
			return nil, invalid("link", text, "allowed is NAME=DEVICE or DEVICE, the name in UTF-8")
		}
		if err := link.CheckDevice(device); err != nil && !f.resident {
			return nil, invalid("link", text, "%w", err)
		}
		if slices.ContainsFunc(links, func(l transfer.Link) bool { return l.Name == name }) {
			return nil, invalid("link", text, "the name %s is taken, every link needs its own", name)
		}
		links = append(links, transfer.Link{Name: name, Device: device})
	}
	family, err := f.family()
	if err != nil {
		return nil, err
	}
	var devices []string
	for _, l := range links {
		devices = append(devices, l.Device)
	}
	for i, l := range links {
		servers, err := f.nameServers(links, i)
		if err != nil {
			return nil, err
		}
		memory := new(link.Memory)
		by := link.Dialer{
			Device: l.Device, Siblings: devices, NameServers: servers, Family: family, Memory: memory, FewAcks: f.algorithm == energySaving,
		}
		links[i].Dial, links[i].Packets, links[i].Service = by.Dial, by.Packets, by.Service
		if !watches {
			continue
		}
		watch := link.Watcher{Device: l.Device, WirelessFile: f.wireless}.Watch
		links[i].Watch = func(ctx context.Context, report func(link.Change)) {
			watch(ctx, func(c link.Change) {
				if c == link.Up {
					memory.Moved()
				}
				report(c)
			})
		}
	}
	return links, nil
}

// family returns the only family of addresses to use, "" for both.
func (f *engineFlags) family() (string, error) {
	switch {
	case f.ipv4 && f.ipv6:
		return "", invalid("ipv4", "", "it and --ipv6 exclude each other")
	case f.ipv4:
		return link.IPv4, nil
	case f.ipv6:
		return link.IPv6, nil
	}
	return "", nil
}

// nameServers returns the name servers for link i.
func (f *engineFlags) nameServers(links []transfer.Link, i int) (servers []netip.AddrPort, err error) {
	for _, text := range f.dns {
		of, address := i, text
		if strings.Contains(text, "=") {
			if of, address, err = ofLink(links, "dns", text, "NAME=ADDRESS or ADDRESS"); err != nil {
				return nil, err
			}
		}
		server, err := link.ParseNameServer(address)
		if err != nil {
			return nil, invalid("dns", text, "%w", err)
		}
		if of == i {
			servers = append(servers, server)
		}
	}
	return servers, nil
}

func (f *engineFlags) parseBandwidths(links []transfer.Link) error {
	for _, text := range f.bandwidths {
		i, rate, err := ofLink(links, "bandwidth", text, "NAME=RATE such as wifi=80Mbit/s")
		if err != nil {
			return err
		}
		bandwidth, err := quantity.ParseRate(rate)
		if err != nil {
			return invalid("bandwidth", text, "%w", err)
		}
		links[i].Bandwidth = bandwidth
	}
	return nil
}

// ofLink parses NAME=VALUE and finds the link with this name.
func ofLink(links []transfer.Link, flag, text, form string) (i int, value string, err error) {
	name, value, ok := strings.Cut(text, "=")
	if !ok {
		return 0, "", invalid(flag, text, "allowed is %s", form)
	}
	names := make([]string, len(links))
	for i, l := range links {
		if l.Name == name {
			return i, value, nil
		}
		names[i] = l.Name
	}
	return 0, "", invalid(flag, text, "there is no link %q, the links are %s", name, strings.Join(names, ", "))
}
