// Package link reaches servers through one network device for each link: TCP connections and
// DNS queries that are bound to the device, a reader that saves system calls, and the
// kernel's round trip times.
package link

import (
	"fmt"
	"net"
	"strings"
)

// CheckDevice returns an error with the existing devices if no device has this name.
func CheckDevice(name string) error {
	devices, err := net.Interfaces()
	if err != nil {
		return fmt.Errorf("list network devices: %w", err)
	}
	names := make([]string, len(devices))
	for i, d := range devices {
		if d.Name == name {
			return nil
		}
		names[i] = d.Name
	}
	return fmt.Errorf("there is no network device %q: this machine has %s", name, strings.Join(names, ", "))
}
