package linklabtest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/linklab/linklab/client/linklabtest"
	"github.com/linklab/linklab/client/tests/testkit"
)

// holdVariable has TestHold keep a lab open.
const holdVariable = "LINKLABTEST_HOLD"

var content = bytes.Repeat([]byte("linklab "), 125_000)

// scenario returns a small scenario. It skips tests of a real lab where LINKLAB names no linklab:
// tests/go_package_test.py names it.
func scenario(t *testing.T) string {
	t.Helper()
	if os.Getenv(linklabtest.Program) == "" {
		t.Skipf("%s names no linklab", linklabtest.Program)
	}
	return "testdata/small.yaml"
}

func server(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(content)
	}))
	t.Cleanup(server.Close)
	return server
}

// took returns how long a download through a transport takes.
func took(t *testing.T, way http.RoundTripper, url string) time.Duration {
	t.Helper()
	begun := time.Now()
	got, err := fetched(way, url)
	if err != nil || !bytes.Equal(got, content) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	return time.Since(begun)
}

func fetched(way http.RoundTripper, url string) ([]byte, error) {
	client := http.Client{Transport: way, Timeout: 30 * time.Second}
	answer, err := client.Get(url)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %s", answer.Status)
	}
	return io.ReadAll(answer.Body)
}

func TestLinksAreUsed(t *testing.T) {
	lab := linklabtest.Start(t, scenario(t), linklabtest.Origin(server(t).URL))
	url := lab.Origins[0]
	lte, wifi := lab.Link("lte"), lab.Link("wifi")
	took(t, lab.RoundTripper(), url)
	before := [2]int64{lte.Carried().Bytes, wifi.Carried().Bytes}
	if got := before[0] + before[1]; got < int64(len(content)) {
		t.Errorf("the links carried %d bytes of %d", got, len(content))
	}
	took(t, lte.RoundTripper(), url)
	if got := lte.Carried(); got.Bytes-before[0] < int64(len(content)) || got.SentBytes == 0 {
		t.Errorf("lte carried %v after %d, of %d bytes more", got, before[0], len(content))
	}
	if got := wifi.Carried().Bytes - before[1]; got > 1000 {
		t.Errorf("wifi carried %d bytes of a download over lte", got)
	}
}

func TestLinksAreChanged(t *testing.T) {
	lab := linklabtest.Start(t, scenario(t), linklabtest.Origin(server(t).URL))
	url := lab.Origins[0]
	lte, wifi := lab.Link("lte"), lab.Link("wifi")
	lte.Set(linklabtest.Change{"down": "2 Mbit/s", "loss": "0 %"})
	least := time.Duration(len(content)) * 8 * time.Second / 2e6
	if slow := took(t, lte.RoundTripper(), url); slow < least {
		t.Errorf("%v over 2 Mbit/s, the least is %v", slow, least)
	}
	if fast := took(t, wifi.RoundTripper(), url); fast > least {
		t.Errorf("%v over the link that was not changed", fast)
	}
	lte.Restore()
	delayed := linklabtest.Change{"delay": "300 ms"}
	wifi.Set(linklabtest.Change{"impair_up": delayed, "impair_down": delayed})
	if slow := took(t, wifi.RoundTripper(), url); slow < 600*time.Millisecond {
		t.Errorf("%v over a link with a delay of 300 ms in each direction", slow)
	}
	wifi.Restore()
	wifi.Set(linklabtest.Change{"carrier": "down"}.For(2 * time.Second))
	begun := time.Now()
	for {
		if _, err := fetched(wifi.RoundTripper(), url); err == nil {
			break
		}
		if time.Since(begun) > time.Minute {
			t.Fatal("the link does not come back")
		}
	}
	if away := time.Since(begun); away < time.Second {
		t.Errorf("the link was away for %v, wanted 2 s", away)
	}
}

func TestTestsShareALabThatIsSetBack(t *testing.T) {
	shared := linklabtest.Share(scenario(t), linklabtest.Origin(server(t).URL))
	t.Cleanup(shared.Close)
	states := make([]any, 3)
	for i := range states {
		t.Run("", func(t *testing.T) {
			lab := shared.Lab(t)
			states[i] = linksOf(t, lab)
			lab.Link("wifi").Set(linklabtest.Change{"carrier": "down"})
			lab.Link("lte").Set(linklabtest.Change{"rtt": "50 ms", "impair_up": linklabtest.Change{"loss": "1 %"}})
			took(t, lab.RoundTripper(), lab.Origins[0])
			testkit.Holds(t, !reflect.DeepEqual(linksOf(t, lab), states[0]), "a changed lab is as at its start")
		})
		testkit.Alike(t, states[i], states[0])
	}
}

// linksOf returns what a lab says of its links.
func linksOf(t *testing.T, lab *linklabtest.Lab) any {
	t.Helper()
	answer, err := http.Get(strings.TrimSuffix(lab.Metrics, "/metrics") + "/lab")
	testkit.OK(t, err)
	defer answer.Body.Close()
	var status struct{ Links map[string]any }
	testkit.OK(t, json.NewDecoder(answer.Body).Decode(&status))
	return status.Links
}

// A recorder is a test that records failures.
type recorder struct {
	testing.TB
	said []string
}

func (r *recorder) Errorf(format string, words ...any) {
	r.said = append(r.said, fmt.Sprintf(format, words...))
}

func (r *recorder) Fatalf(format string, words ...any) {
	r.Errorf(format, words...)
	runtime.Goexit()
}

// failures returns what a test says that does something.
func failures(t *testing.T, does func(t testing.TB)) string {
	test, done := &recorder{TB: t}, make(chan struct{})
	go func() {
		defer close(done)
		does(test)
	}()
	<-done
	return strings.Join(test.said, "\n")
}

func TestMistakesHaveTheTextsOfLinklab(t *testing.T) {
	small := scenario(t)
	said := failures(t, func(t testing.TB) {
		lab := linklabtest.Start(t, small)
		lab.Link("wifi").Set(linklabtest.Change{"down": "5 apples"})
		lab.Link("wifi").Set(linklabtest.Change{"jitter": "1 s"})
		lab.Link("wifi").Set(linklabtest.Change{"impair_up": linklabtest.Change{"loss": "3"}})
		lab.Link("wfi")
	})
	for _, words := range []string{
		"wifi: down: '5 apples' has the unknown unit",
		"wifi: impair_up.loss: '3' has no unit; allowed: a ratio",
		"a jitter of 1 s does not fit a round trip of 10 ms",
		"no link is called 'wfi' (did you mean 'wifi'?); there are: wifi, lte",
	} {
		testkit.Holds(t, strings.Contains(said, words), said, words)
	}
}

func TestALabThatCannotBeIsRefusedInWords(t *testing.T) {
	small := scenario(t)
	for _, one := range []struct {
		scenario string
		option   linklabtest.Option
		words    string
	}{
		{small, linklabtest.Origin("http://127.0.0.1:1/"), "127.0.0.1:1 does not answer: Connection refused"},
		{small, linklabtest.Origin("ftp://x/"), "--origin ftp://x/: no such URL; allowed: http or https"},
		{small, linklabtest.Place("moon"), "invalid choice: 'moon'"},
		{small, linklabtest.StartTime(time.Millisecond), "the lab did not start within 1ms"},
		{"trian", linklabtest.Seed(2), "no scenario is called 'trian' (did you mean 'train'?); allowed: "},
	} {
		said := failures(t, func(t testing.TB) { linklabtest.Start(t, one.scenario, one.option) })
		testkit.Holds(t, strings.Contains(said, one.words), said, one.words)
	}
}

// TestHold forgets its lab. tests/go_package_test.py kills it, or ends its input.
func TestHold(t *testing.T) {
	if os.Getenv(holdVariable) == "" {
		t.Skip("only for tests of its end")
	}
	linklabtest.Start(t, scenario(t))
	fmt.Println("open")
	_, _ = io.ReadAll(os.Stdin)
	go panic("as a timeout of go test does") // Not in the test's goroutine, which would clean up.
	select {}
}

// TestWithoutLinklab is what a user's test does where there may be no linklab.
func TestWithoutLinklab(t *testing.T) {
	if os.Getenv(holdVariable) != "none" {
		t.Skip("only for TestIsSkippedWithoutLinklab")
	}
	linklabtest.Start(t, "train")
}

func TestIsSkippedWithoutLinklab(t *testing.T) {
	for _, one := range []struct{ variable, words string }{
		{"CI=", "--- SKIP"},
		{"CI=true", "--- FAIL"},
		{linklabtest.Program + "=/nowhere/linklab", "--- FAIL"},
	} {
		command := exec.Command(os.Args[0], "-test.run", "^TestWithoutLinklab$", "-test.v")
		command.Env = []string{holdVariable + "=none", "PATH=/nowhere", one.variable}
		said, _ := command.CombinedOutput() // What it says has how it ended.
		for _, words := range []string{one.words, "no linklab here", "make wheel"} {
			testkit.Holds(t, strings.Contains(string(said), words), one.variable, said, words)
		}
	}
}
