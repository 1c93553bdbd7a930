package cli

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/racedetector"
	"github.com/linklab/linklab/client/tests/oddserver"
	"github.com/linklab/linklab/client/tests/testkit"
)

// odd starts a server with all habits, at one address for each link under one name. It returns the
// base of URLs and the flags of the links.
func odd(t *testing.T, server *oddserver.Server, protocol string) (base string, links map[string][]string) {
	t.Helper()
	addresses := []string{"127.0.0.2", "127.0.0.3"}
	started, err := server.Start(protocol, addresses...)
	testkit.OK(t, err)
	t.Cleanup(started.Close)
	authority := authorityOf(t, started)
	links = map[string][]string{}
	for i, name := range []string{"wifi", "lte"} {
		links[name] = []string{"--ca-file", authority, "--link", name + "=lo", "--dns", name + "=" + testkit.Names(t, addresses[i])}
	}
	_, port, _ := net.SplitHostPort(started.Listener.Addr().String())
	return "https://example.com:" + port + "/", links
}

// atOnce is how many downloads from odd servers a test runs at a time. They mostly wait.
const atOnce = 16

// With every habit of a server, the download brings the right file.
func TestOddServers(t *testing.T) {
	server := oddserver.New(file, oddserver.WithRate(8_000_000))
	checksum := fmt.Sprintf("sha-256=%x", sha256.Sum256(file))
	var wg sync.WaitGroup
	room := make(chan struct{}, atOnce)
	part := 0
	for _, speaks := range []struct{ protocol, flag string }{
		{oddserver.HTTP2, ""}, {oddserver.HTTP1, ""}, {oddserver.HTTP3, "--http3-only"}, {oddserver.HTTP3, "--http3"},
	} {
		protocol := speaks.protocol
		base, links := odd(t, server, protocol)
		both := slices.Concat(links["wifi"], links["lte"])
		if speaks.flag != "" {
			both = append(both, speaks.flag)
		}
		ways := map[string][]string{
			"adaptive":           slices.Concat(both, []string{"--algorithm", "adaptive"}),
			"one connection":     slices.Concat(both, []string{"--connections", "1"}),
			"adaptive, checksum": slices.Concat(both, []string{"--algorithm", "adaptive", "--checksum", checksum}),
			"one link":           links["lte"],
			"to a pipe":          slices.Concat(both, []string{"-o", "-"}),
		}
		for _, how := range slices.Sorted(maps.Keys(ways)) {
			flags := ways[how]
			if protocol == oddserver.HTTP1 && how != "adaptive" && how != "one link" || protocol == oddserver.HTTP3 && how != "adaptive" {
				continue
			}
			part++
			for i, habit := range oddserver.Habits {
				// With the race detector each habit is tried in one of the nine ways.
				if racedetector.On && i%9 != part%9 {
					continue
				}
				name := filepath.Join(t.TempDir(), "file")
				wg.Go(func() {
					room <- struct{}{}
					defer func() { <-room }()
					what := strings.Join([]string{habit.Name, how, protocol, speaks.flag}, ", ")
					url := base + habit.Name + "/" + strings.NewReplacer(" ", "", "/", "").Replace(how+protocol+speaks.flag)
					begun := time.Now()
					code, stdout, stderr := run(append([]string{"get", url, "-o", name, "--quiet", "--give-up", "5m"}, flags...)...)
					if code != 0 && habit.Differs && (strings.Contains(how, "checksum") || how == "to a pipe") {
						// No byte of the other file may be used. The server may not have this file any more.
						return
					}
					got, err := os.ReadFile(name)
					if how == "to a pipe" {
						got, err = []byte(stdout), nil
					}
					testkit.Holds(t, code == 0 && err == nil && server.Is(habit, got), what, code, len(got), err, stderr)
					t.Logf("%s: %v, %d requests", what, time.Since(begun).Round(time.Millisecond), server.Asked(strings.TrimPrefix(url, strings.TrimSuffix(base, "/"))))
				})
			}
		}
	}
	wg.Wait()
}

// If servers with one name give the same file different validators, all links use the first server
// and download together.
func TestMirrorsThatDiffer(t *testing.T) {
	t.Parallel()
	server := oddserver.New(file, oddserver.WithRate(2_000_000))
	base, links := odd(t, server, oddserver.HTTP2)
	for _, habit := range []string{"etag-by-address", "date-by-address", "file-by-address"} {
		name := filepath.Join(t.TempDir(), "file")
		code, stdout, stderr := run(slices.Concat([]string{"get", base + habit + "/file", "-o", name, "--json", "--connections", "1"}, links["wifi"], links["lte"])...)
		if code != 0 {
			t.Fatalf("%s: exit code %d, stderr %s", habit, code, stderr)
		}
		summary := summaryOf(t, stdout)
		testkit.Holds(t, strings.Contains(stderr, "servers of the file differ: all links use the one that began"), habit, stderr)
		for _, link := range []string{"wifi", "lte"} {
			if bytes := summary.Links[link].Bytes; bytes == 0 {
				t.Errorf("%s: %s brought %d bytes", habit, link, bytes)
			}
		}
	}
}

// If a server contradicts itself about a file, one link downloads it, and one line says why.
func TestAServerThatContradictsItself(t *testing.T) {
	t.Parallel()
	server := oddserver.New(file, oddserver.WithRate(8_000_000))
	base, links := odd(t, server, oddserver.HTTP2)
	for _, habit := range []string{"etag-by-request", "date-by-request"} {
		name := filepath.Join(t.TempDir(), "file")
		code, _, stderr := run(slices.Concat([]string{"get", base + habit + "/file", "-o", name, "--quiet"}, links["wifi"], links["lte"])...)
		const said = "ranges cannot be used: only the fastest link is used from now on"
		if code != 0 || strings.Count(stderr, said) != 1 || !strings.Contains(stderr, "the file changed on the server during the download: its ETag") && habit == "etag-by-request" {
			t.Errorf("%s: exit code %d, stderr %s", habit, code, stderr)
		}
	}
}
