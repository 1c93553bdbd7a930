package cli

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spf13/pflag"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/linklab/linklab/client/internal/energy"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/internal/transport"
	"github.com/linklab/linklab/client/tests/testkit"
)

// An algorithm with rescue watches the links' devices. For others nothing reads their changes.
func TestLinksAreWatchedForRescue(t *testing.T) {
	for arguments, want := range map[string]bool{"--algorithm=adaptive": true, "--algorithm=alg3": false} {
		f, flags := engineFlags{}, pflag.NewFlagSet("", pflag.ContinueOnError)
		f.register(flags)
		testkit.OK(t, flags.Parse([]string{"--link", "lo", arguments}))
		o, err := f.options(flags)
		testkit.OK(t, err)
		testkit.Same(t, o.Links[0].Watch != nil, want, arguments)
	}
}

// Only --http3=dns has links ask for HTTPS records.
func TestHTTPSRecordsAreAskedForOnRequest(t *testing.T) {
	for argument, want := range map[string]bool{"": false, "--http3": false, "--http3=dns": true, "--http3=false": false, "--http3-only": false} {
		var asked atomic.Bool
		server := testkit.Answers(t, func(q dnsmessage.Question) (none []dnsmessage.Resource) {
			asked.Store(asked.Load() || q.Type == dnsmessage.TypeHTTPS)
			return none
		})
		f, flags := engineFlags{}, pflag.NewFlagSet("", pflag.ContinueOnError)
		f.register(flags)
		f.registerHTTP3(flags)
		f.registerOnlyHTTP3(flags)
		testkit.OK(t, flags.Parse(slices.DeleteFunc([]string{"--link", "lo", "--dns", server, argument}, func(word string) bool { return word == "" })))
		o, err := f.options(flags)
		testkit.OK(t, err)
		_, err = o.Links[0].Dial(transport.To(t.Context(), &url.URL{Scheme: "https", Host: "host.example"}), "host.example:443")
		testkit.Holds(t, err != nil && asked.Load() == want, argument, err, asked.Load())
	}
}

// An algorithm that needs certain kinds of links refuses other kinds, and an energy model without
// one of its kinds.
func TestAlgorithmsRefuseLinksOfOtherKinds(t *testing.T) {
	wifiOnly := written(t, filepath.Join(t.TempDir(), "m.yaml"), []byte("name: m\ndevice: d\nsource: s\nlinks: {wifi: {active: 5 mW}}\n"))
	both := models + "/galaxy-s3.yaml"
	wifi, lte := transfer.Link{Name: "wifi"}, transfer.Link{Name: "b", Device: "rmnet0"}
	for name, test := range map[string]struct {
		model string
		links []transfer.Link
		kinds []energy.Kind
		want  string
	}{
		"any links":          {both, []transfer.Link{wifi, lte}, nil, ""},
		"the kinds":          {both, []transfer.Link{wifi, lte}, []energy.Kind{energy.Wifi, energy.LTE}, ""},
		"another kind":       {both, []transfer.Link{wifi, lte}, []energy.Kind{energy.Wifi}, "--algorithm a: it decides between links of the kinds [wifi]; link b is of kind lte"},
		"a model that lacks": {wifiOnly, []transfer.Link{wifi}, []energy.Kind{energy.Wifi, energy.LTE}, "--energy-model " + wifiOnly + ": it says nothing of lte, which a needs"},
		"a link unknown":     {wifiOnly, []transfer.Link{lte}, nil, "--energy-model " + wifiOnly + ": it says nothing of lte, which link b is"},
	} {
		t.Run(name, func(t *testing.T) {
			f := engineFlags{model: test.model, algorithm: "a"}
			_, err := f.energyModel(test.links, test.kinds)
			testkit.Holds(t, (err != nil) == (test.want != "") && (err == nil || err.Error() == test.want), err, test.want)
		})
	}
}

func TestKeysAreLoggedWhereTheEnvironmentWantsThem(t *testing.T) {
	address, flags := serve(t, http.HandlerFunc(content))
	keys := filepath.Join(t.TempDir(), "keys")
	get := append(flags, "get", address, "--link", "lo", "--quiet", "-o", filepath.Join(t.TempDir(), "copy"))
	t.Setenv("SSLKEYLOGFILE", keys)
	if code, _, stderr := run(get...); code != 0 {
		t.Fatalf("exit code %d, stderr %q", code, stderr)
	}
	text, err := os.ReadFile(keys)
	testkit.Holds(t, err == nil && strings.Contains(string(text), "SERVER_TRAFFIC_SECRET_0 "), text, err)
	if status, err := os.Stat(keys); err != nil || status.Mode().Perm() != 0o600 {
		t.Errorf("the keys can be read by others: %v (%v)", status.Mode(), err)
	}
	t.Setenv("SSLKEYLOGFILE", t.TempDir())
	if code, _, stderr := run(get...); code == 0 || !strings.Contains(stderr, "SSLKEYLOGFILE: ") {
		t.Errorf("a directory for keys: exit code %d, stderr %q", code, stderr)
	}
}
