// Package soak runs the whole client, as a user does, with a server that misbehaves in every way. It
// downloads and uploads for any length of time. The same seed gives the same files, moods and answers.
package soak

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	random "math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/cli"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/tests/testkit"
)

var (
	seed     = flag.Uint64("soak.seed", 1, "of files, answers and clients")
	duration = flag.Duration("soak.time", 0, "how long downloads begin (default: two of each client)")
	largest  = flag.Int("soak.largest", 4<<20, "size of the largest file in bytes")
	model    = flag.String("soak.model", "../../../profiles/energy/galaxy-s3.yaml", "an energy model; in the lab the working directory is not this package's")
	inLab    = flag.Bool("soak.lab", false, "use the links of the lab in which `linklab exec` runs this, with the server beside its H2O (default: loopback)")
)

const (
	// asClient in the environment turns the test's binary into multilink.
	asClient = "MULTILINK_SOAK_CLIENT"
	// hang is how long a transfer may take. All of its links fail several times.
	hang = 10 * time.Minute
	// giveUp is how long a client waits for a byte: longer than the silence of several
	// connections in a row.
	giveUp = "3m"
	// parallel is how many downloads the proxy runs at a time.
	parallel = 2

	// connections is the value of --connections: how many connections a link may have at a time,
	// if the algorithm uses several.
	connections = 4
	// sessions is how many sessions a link has in a download with one connection at a time
	// (download.mostSessions): older ones complete their requests. several is the same with
	// several connections: one of them has older ones.
	sessions = 4
	several  = connections + sessions - 1
	// sending is how many sessions a link has in an upload: a silent one gets another one beside
	// it.
	sending = 2 * connections
	// http1 is how many HTTP/1.1 connections one session may have.
	http1 = 3
	// spare is how many further connections the proxy has: a file begins with one request on a
	// connection of its own, and the proxy keeps four of them.
	spare = parallel + 4
)

func TestMain(m *testing.M) {
	if os.Getenv(asClient) != "" {
		os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// client is a program that downloads, with its own port of the server.
type client struct {
	name string
	// base is the URL of the directory of its files.
	base string
	// most is how many connections it may have on a link.
	most int
	// flags are common to all commands that download.
	flags []string
}

// soak is a run.
type soak struct {
	t       *testing.T
	server  *hostile
	started time.Time
	// directory holds all files of the run.
	directory string

	mu sync.Mutex
	// ended counts downloads by client and outcome. longest describes the longest download.
	ended   map[string]int
	longest string
	took    time.Duration
}

func TestSoak(t *testing.T) {
	s := &soak{t: t, started: time.Now(), directory: t.TempDir(), ended: map[string]int{}}
	host, hosts, flags, process := s.place()
	server := newHostile(*seed, *largest, host)
	defer server.close()
	s.server = server
	ca := filepath.Join(s.directory, "ca.pem")
	testkit.OK(t, os.WriteFile(ca, server.ca, 0o600))
	flags = append(flags, "--ca-file", ca, "--give-up", giveUp, "--connections", strconv.Itoa(connections))

	open := func(name string, most int, onlyHTTP2 bool) client {
		c := client{name: name, most: most, flags: flags}
		var port string
		for i, ip := range hosts {
			at := net.JoinHostPort(ip, "0")
			if i > 0 {
				at = net.JoinHostPort(ip, port)
			}
			l, err := listenIn(process, func() (net.Listener, error) { return net.Listen("tcp4", at) })
			testkit.OK(t, err)
			_, port, _ = net.SplitHostPort(l.Addr().String())
			packets, err := listenIn(process, func() (net.PacketConn, error) { return net.ListenPacket("udp4", l.Addr().String()) })
			testkit.OK(t, err)
			t.Cleanup(func() {
				l.Close()
				packets.Close()
			})
			go server.admit(name, l, onlyHTTP2)
			go server.admitQUIC(name, packets, &tls.Config{Certificates: server.servers[0].TLSConfig.Certificates})
		}
		c.base = "https://" + net.JoinHostPort(host, port) + "/"
		return c
	}
	var wg sync.WaitGroup
	var callers []client
	// call repeats f with one of the algorithms. Each call uses another port than the call before
	// it, so its last connections end before the port is used again.
	call := func(name string, most int, onlyHTTP2 bool, f func(client, int, string), algorithms []string, more ...string) {
		two := []client{open(name+" a", most, onlyHTTP2), open(name+" b", most, onlyHTTP2)}
		for i := range two {
			two[i].flags = slices.Concat(two[i].flags, more)
		}
		callers = append(callers, two...)
		wg.Go(func() {
			s.repeat(name, func(n int, r *random.Rand) { f(two[n%2], n, algorithms[r.IntN(len(algorithms))]) })
		})
	}
	call("get h2", sessions, true, s.get, singles)
	call("get", sessions*http1, false, s.get, singles)
	call("several h2", several, true, s.get, multiples)
	call("several", several*http1, false, s.get, multiples)
	call("get h3", sessions, true, s.get, singles, "--http3-only")
	call("several h3", several, true, s.get, multiples, "--http3-only")
	call("several, offered h3", several, true, s.get, multiples, "--http3")
	call("put h2", sending, true, s.put, multiples)
	call("put", sending*http1, false, s.put, multiples)

	f, port := &failing{}, "0"
	for _, ip := range hosts {
		l, err := listenIn(process, func() (net.Listener, error) { return net.Listen("tcp4", net.JoinHostPort(ip, port)) })
		testkit.OK(t, err)
		_, port, _ = net.SplitHostPort(l.Addr().String())
		t.Cleanup(func() { l.Close() })
		go f.serve(l, &tls.Config{Certificates: server.servers[0].TLSConfig.Certificates, NextProtos: []string{"http/1.1"}})
	}
	wg.Go(func() {
		s.repeat("failing", func(n int, r *random.Rand) {
			s.fails(f, "https://"+net.JoinHostPort(host, port)+"/", flags, n, r)
		})
	})

	server.mu.Lock()
	server.merged["proxy"] = true // It downloads several files at a time.
	server.mu.Unlock()
	proxied := open("proxy", parallel*several*http1+spare, false)
	// The proxy has room for further streams: a file ends for its client before it ends for the
	// proxy. A file without room uses one link, and may fail with it.
	proxy, stopProxy := s.start("proxy", append(flags, "--listen", "127.0.0.1:0", "--streams", strconv.Itoa(2*parallel), "--http3"), "multilink proxy on ")
	for i := range parallel {
		wg.Go(func() {
			s.repeat(fmt.Sprint("proxy ", i), func(n int, r *random.Rand) { s.proxied(proxied, proxy, fmt.Sprintf("proxy-%d-%d", i, n), r) })
		})
	}
	wg.Wait()
	stopProxy()
	for _, c := range append(callers, proxied) {
		s.checkConnections(c)
	}
	s.checkFailures()
	t.Logf("seed %d, %v: %v", *seed, time.Since(s.started).Round(time.Second), s.ended)
	t.Logf("the longest: %s, %v", s.longest, s.took.Round(time.Millisecond))
	t.Log(server.counts())
}

// place returns where the server is: its name, its addresses, the flags that lead clients there, and a
// process in whose network namespace it runs. On loopback all links use the same device. Then the
// server has an address for each link, which the link's name server tells.
func (s *soak) place() (host string, hosts, flags []string, process int) {
	if *inLab {
		u, err := url.Parse(os.Getenv("LINKLAB_URL"))
		if err != nil || u.Hostname() == "" {
			s.t.Fatal("LINKLAB_URL is no URL: linklab exec sets it")
		}
		return u.Hostname(), []string{u.Hostname()}, []string{"--link", "wifi=wlan0", "--link", "lte=rmnet0"}, processOf(s.t, "h2o")
	}
	for i, l := range []string{"wifi", "lte"} {
		ip := fmt.Sprintf("127.0.0.%d", 2+i)
		hosts = append(hosts, ip)
		flags = append(flags, "--link", l+"=lo", "--dns", l+"="+testkit.Names(s.t, ip))
	}
	return "soak.test", hosts, flags, 0
}

func processOf(t *testing.T, program string) int {
	names, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, name := range names {
		if text, _ := os.ReadFile(name); strings.TrimSpace(string(text)) == program {
			id, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			return id
		}
	}
	t.Fatalf("no program %q runs", program)
	return 0
}

// repeat calls f with numbers from 0 and its own random source until the time is over.
func (s *soak) repeat(name string, f func(int, *random.Rand)) {
	for n := 0; ; n++ {
		over := n >= 2
		if *duration > 0 {
			over = time.Since(s.started) >= *duration
		}
		if over || s.t.Failed() {
			return
		}
		begun := time.Now()
		f(n, s.server.source(name, n))
		s.mu.Lock()
		if took := time.Since(begun); took > s.took {
			s.took, s.longest = took, fmt.Sprintf("%s, call %d", name, n)
		}
		s.mu.Unlock()
	}
}

// command returns a call of multilink, and its output.
func (s *soak) command(arguments ...string) (*exec.Cmd, *testkit.Text) {
	c := exec.Command("/proc/self/exe", arguments...)
	c.Env = append(os.Environ(), asClient+"=1", "no_proxy=*")
	c.Dir = s.directory
	out := &testkit.Text{}
	c.Stdout, c.Stderr = out, out
	return c, out
}

// sound fails if a program crashed or found a race.
func (s *soak) sound(what, text string) {
	for _, word := range []string{"panic:", "DATA RACE", "fatal error:", "SIGSEGV", "goroutine "} {
		if strings.Contains(text, word) {
			s.t.Errorf("%s: %s\n%s", what, word, text)
			return
		}
	}
}

// call runs multilink to its end. If it hangs, it prints the stacks.
func (s *soak) call(what string, arguments ...string) (code int, text string) {
	c, out := s.command(arguments...)
	if err := c.Start(); err != nil {
		s.t.Error(err)
		return -1, ""
	}
	watchdog := time.AfterFunc(hang, func() {
		s.t.Errorf("%s hangs", what)
		c.Process.Signal(syscall.SIGQUIT)
	})
	c.Wait()
	watchdog.Stop()
	s.sound(what, out.String())
	return c.ProcessState.ExitCode(), out.String()
}

// start runs multilink until stop. It returns the text after ready in the line that multilink prints
// when it is ready.
func (s *soak) start(name string, flags []string, ready string) (after string, stop func()) {
	c, out := s.command(append([]string{name}, flags...)...)
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() {
		c.Wait()
		close(exited)
	}()
	for {
		if _, text, ok := strings.Cut(out.String(), ready); ok && strings.Contains(text, "\n") {
			after, _, _ = strings.Cut(text, "\n")
			break
		}
		select {
		case <-exited:
			s.t.Fatalf("%s does not start: %s", name, out)
		case <-time.After(10 * time.Millisecond):
		}
	}
	return after, func() {
		select {
		case <-exited:
			s.t.Errorf("%s ended before its time", name)
		default:
		}
		c.Process.Signal(syscall.SIGTERM)
		select {
		case <-exited:
		case <-time.After(hang):
			s.t.Errorf("%s does not end", name)
			c.Process.Signal(syscall.SIGQUIT)
			<-exited
		}
		s.sound(name, out.String())
		if code := c.ProcessState.ExitCode(); code != 0 {
			s.t.Errorf("%s ends with %d: %s", name, code, out)
		}
	}
}

// note counts the outcome of a download, which is over. A download may fail only if its server prevents success, or if
// may is true.
func (s *soak) note(client, path string, failure string, may bool) {
	_, m := s.server.file("/" + path)
	s.server.forget("/" + path)
	how := "whole"
	if failure != "" {
		how = "failed"
		if !may {
			s.t.Errorf("%s: %s, a file that is %s, failed: %s", client, path, m, failure)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if status, _, _ := strings.Cut(failure, " "); client == "proxy" && (status == "502" || status == "503") {
		how += " with " + status
	}
	s.ended[fmt.Sprintf("%s: %s, %s", client, m, how)]++
}

// right checks a file that is reported as complete.
func (s *soak) right(client, path string, got []byte, err error) {
	if want, m := s.server.file("/" + path); err != nil || !bytes.Equal(got, want) {
		s.t.Errorf("%s: %s, a file that is %s, has %d bytes that are not the %d of the server's (%v)", client, path, m, len(got), len(want), err)
	}
}

// that returns the names of the algorithms that have rescue and for which is is true.
func that(is func(schedule.Algorithm) bool) (names []string) {
	for _, a := range schedule.Algorithms {
		if a.Rescue && is(a) {
			names = append(names, a.Name)
		}
	}
	return names
}

func hasSeveral(a schedule.Algorithm) bool { return a.Takes("connections") }

// singles use one connection of a link at a time, and multiples several.
var (
	singles   = that(func(a schedule.Algorithm) bool { return !hasSeveral(a) })
	multiples = that(hasSeveral)
)

// energyModel returns the path of an energy model. It is absolute, because the test changes its directory.
func energyModel() string {
	path, err := filepath.Abs(*model)
	if err != nil {
		panic(err)
	}
	return path
}

// path names the file of a client's call.
func (c client) path(n int) string {
	return fmt.Sprintf("%s-%d", strings.NewReplacer(" ", "-", ",", "").Replace(c.name), n)
}

// get downloads a file with "multilink get".
func (s *soak) get(c client, n int, algorithm string) {
	path := c.path(n)
	needed := []string{"--playback-rate", "100Mbit/s", "--energy-model", energyModel()}
	name := filepath.Join(s.directory, path)
	s.server.expect(c.name, "/"+path)
	code, text := s.call(path, append([]string{"get", c.base + path, "-o", name, "--quiet", "--algorithm", algorithm,
		"--first-request", fmt.Sprint(*largest / 20), "--upper-limit", fmt.Sprint(*largest / 40), "--segment", fmt.Sprint(*largest / 40)}, append(needed, c.flags...)...)...)
	switch code {
	case 0:
		got, err := os.ReadFile(name)
		s.right(c.name, path, got, err)
		s.note(c.name, path, "", false)
	case 1:
		// A server without ranges sends up to half of the file in each answer that fails: the download may cost too much.
		_, m := s.server.file("/" + path)
		s.note(c.name, path, text, m != ranged && strings.Contains(text, "the server sends the same bytes again and again"))
	default:
		s.t.Errorf("%s: exit code %d: %s", path, code, text)
	}
	s.remove(name)
}

// put uploads a file with "multilink put".
func (s *soak) put(c client, n int, algorithm string) {
	path := c.path(n)
	name := filepath.Join(s.directory, path)
	content, m := s.server.file("/" + path)
	if err := os.WriteFile(name, content, 0o600); err != nil {
		s.t.Error(err)
		return
	}
	code, text := s.call(path, append([]string{"put", name, c.base + path, "--quiet", "--ranged", "--algorithm", algorithm}, c.flags...)...)
	switch code {
	case 0:
		s.right(c.name, path, s.server.uploaded("/"+path), nil)
		s.note(c.name, path, "", false)
	case 1:
		// A server that accepted ranges before keeps their bytes. No request deletes them.
		changes := (m == fickle || m == turning) && strings.Contains(text, "the server answers")
		// It takes parts of bodies, and answers with errors: an upload may cost too much.
		costs := strings.Contains(text, "the server takes the same bytes again and again")
		s.note(c.name, path, text, changes || costs)
	default:
		s.t.Errorf("%s: exit code %d: %s", path, code, text)
	}
	s.remove(name)
}

// remove removes a file, and its part after a failed call.
func (s *soak) remove(name string) {
	for _, suffix := range []string{"", ".part", ".part.state"} {
		if err := os.Remove(name + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			s.t.Error(err)
		}
	}
}

// proxied reads a file, or the end of one, through the proxy. The proxy breaks off what it cannot
// deliver, so that no client takes it for complete. It delivers every file in ranges that it has begun.
// Before that, it passes the server's 503 on, and answers 502 if no link brings an answer.
func (s *soak) proxied(c client, proxy, path string, r *random.Rand) {
	want, m := s.server.file("/" + path)
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, proxy+"/"+c.base+path, nil)
	if err != nil {
		s.t.Error(err)
		return
	}
	if from := r.IntN(len(want)); r.IntN(3) == 0 && m == ranged {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
	}
	response, err := (&http.Transport{DisableKeepAlives: true, DisableCompression: true}).RoundTrip(request)
	if err != nil {
		s.hung(ctx, path, err)
		s.note(c.name, path, err.Error(), m != ranged)
		return
	}
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		s.hung(ctx, path, err)
		s.note(c.name, path, err.Error(), m != ranged)
		return
	case response.StatusCode == http.StatusOK:
	case response.StatusCode == http.StatusPartialContent && request.Header.Get("Range") != "":
		var first, last, size int
		if _, err := fmt.Sscanf(response.Header.Get("Content-Range"), "bytes %d-%d/%d", &first, &last, &size); err != nil || size != len(want) || first < 0 || last >= size || first > last {
			s.t.Errorf("%s: Content-Range %q of %d bytes: %v", path, response.Header.Get("Content-Range"), len(want), err)
			return
		}
		want = want[first : last+1]
	default:
		may := m != ranged || response.StatusCode == http.StatusServiceUnavailable || response.StatusCode == http.StatusBadGateway
		s.note(c.name, path, response.Status, may)
		return
	}
	if !bytes.Equal(got, want) {
		s.t.Errorf("%s, a file that is %s: %d bytes that are not the %d of the server's, status %s", path, m, len(got), len(want), response.Status)
	}
	s.note(c.name, path, "", false)
}

func (s *soak) hung(ctx context.Context, what string, err error) {
	if ctx.Err() != nil {
		s.t.Errorf("%s hangs: %v", what, err)
	}
}

// checkFailures fails if more than one of 50 downloads with "multilink get" failed, and more than one.
func (s *soak) checkFailures() {
	var all, failed int
	for outcome, n := range s.ended {
		if strings.HasPrefix(outcome, "put") || strings.HasPrefix(outcome, "proxy") {
			continue
		}
		if all += n; strings.Contains(outcome, ", failed") {
			failed += n
		}
	}
	if failed > max(1, all/50) {
		s.t.Errorf("%d of %d downloads failed", failed, all)
	}
}

// checkConnections compares the largest number of a client's connections at a time with the allowed
// number.
func (s *soak) checkConnections(c client) {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	links := map[[2]string]bool{}
	for f, n := range s.server.most {
		if f.client != c.name {
			continue
		}
		links[[2]string{f.from, f.to}] = true
		most := c.most
		if f.merged {
			most *= 2
		}
		s.t.Logf("%s, link %s to %s: %d connections at a time, at most %d are allowed", c.name, f.from, f.to, n, most)
		if n > most {
			s.t.Errorf("%s, link %s to %s: %d connections at a time, at most %d are allowed", c.name, f.from, f.to, n, most)
		}
	}
	// A single call may end before the second link has connected.
	if seen := len(links); seen == 0 || seen == 1 && *duration > 0 {
		s.t.Errorf("%s used %d links", c.name, seen)
	}
}
