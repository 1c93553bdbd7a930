package linklabtest_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/linklab/linklab/client/linklabtest"
	"github.com/linklab/linklab/client/tests/testkit"
)

// A test puts its server behind the links of a scenario, and takes one away.
func ExampleStart() {
	_ = func(t *testing.T) { // TestTheAppRecovers
		server := httptest.NewServer(http.FileServer(http.Dir(".")))
		t.Cleanup(server.Close)
		lab := linklabtest.Start(t, "wifi-outage", linklabtest.Origin(server.URL))
		client := http.Client{Transport: lab.RoundTripper(), Timeout: time.Minute}
		lab.Link("lte").Set(linklabtest.Change{"down": "2 Mbit/s"})
		lab.Link("wifi").Set(linklabtest.Change{"carrier": "down"}.For(3 * time.Second))
		answer, err := client.Get(lab.Origins[0])
		testkit.OK(t, err)
		defer answer.Body.Close()
	}
}
