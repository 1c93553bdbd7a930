package testkit

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// inNamespace is set in a test that runs in its own network namespace.
const inNamespace = "MULTILINK_TEST_NAMESPACE"

// The addresses at the far end of the cable. IPv6 has the black hole.
const (
	Far4 = "10.9.0.2"
	Far6 = "2001:db8:9::2"
)

// Lay makes a device "near" that leads to another network namespace, and returns listeners there.
// Two bridges are between them. The cable between the bridges silently drops packets above 1280
// bytes, in the direction of the near end if towards is true, else in the other direction.
func Lay(t *testing.T, towards bool) (v4, v6 net.Listener) {
	t.Helper()
	ip := func(words string) { IP(t, words) }
	ip("link set lo up")
	ip("link add hole0 type veth peer name hole1")
	for i, end := range []string{"near", "far"} {
		bridge := fmt.Sprintf("bridge%d", i)
		if out, err := exec.Command("ip", "link", "add", bridge, "type", "bridge").CombinedOutput(); err != nil {
			t.Skipf("no bridge: %v: %s", err, out)
		}
		ip("link add " + end + " type veth peer name " + end + "-port")
		for _, port := range []string{end + "-port", fmt.Sprintf("hole%d", i)} {
			ip("link set " + port + " master " + bridge + " up")
		}
		ip("link set " + bridge + " up")
	}
	ip("link set hole0 mtu 1280")
	// Each end tells the other the largest size of segments. Batches would pass the black hole.
	up := func(device, end string, large bool) {
		ip("link set " + device + " gso_max_segs 1 up")
		ip("addr add 10.9.0." + end + "/32 dev " + device)
		ip("addr add 2001:db8:9::" + end + "/128 nodad dev " + device)
		ip("route add 10.9.0.0/24 dev " + device + " advmss 1200 src 10.9.0." + end)
		words := "route add 2001:db8:9::/64 dev " + device
		if !large {
			words += " advmss 1200"
		}
		ip(words)
	}
	up("near", "1", towards)
	type listeners struct {
		v4, v6 net.Listener
		failed error
	}
	made := make(chan listeners)
	moved := make(chan struct{})
	thread := make(chan int)
	go func() {
		runtime.LockOSThread() // Without unlocking, the thread ends.
		err := unix.Unshare(unix.CLONE_NEWNET)
		thread <- unix.Gettid()
		<-moved
		if err != nil {
			made <- listeners{failed: err}
			return
		}
		up("far", "2", !towards)
		v4, err4 := net.Listen("tcp4", Far4+":443")
		v6, err6 := net.Listen("tcp6", "["+Far6+"]:443")
		if err4 != nil || err6 != nil {
			err = fmt.Errorf("%v, %v", err4, err6)
		}
		made <- listeners{v4, v6, err}
	}()
	ip(fmt.Sprintf("link set far netns /proc/%d/task/%d/ns/net", os.Getpid(), <-thread))
	close(moved)
	got := <-made
	if got.failed != nil {
		t.Fatal(got.failed)
	}
	t.Cleanup(func() { got.v4.Close(); got.v6.Close() })
	return got.v4, got.v6
}

// IP runs ip(8) with these words.
func IP(t *testing.T, words string) {
	t.Helper()
	if out, err := exec.Command("ip", strings.Fields(words)...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v: %s", words, err, out)
	}
}

// Again runs the test again in a network namespace where it may change devices. It skips the test if
// that is not allowed. It returns false in that namespace.
func Again(t *testing.T) bool {
	t.Helper()
	if os.Getenv(inNamespace) != "" {
		return false
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("there is no ip(8)")
	}
	command := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	command.Env = append(os.Environ(), inNamespace+"=1")
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := command.CombinedOutput()
	switch {
	case len(out) == 0 && err != nil:
		t.Skip("no namespace of its own: ", err)
	case err != nil:
		t.Errorf("%v\n%s", err, out)
	case !strings.Contains(string(out), "--- PASS"):
		t.Errorf("it did not run:\n%s", out)
	}
	return true
}
