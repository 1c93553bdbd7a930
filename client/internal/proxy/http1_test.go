package proxy

import (
	"bytes"
	"testing"
)

func TestTheProxySplitsAFileOverLinks(t *testing.T) {
	o := serve(t, false, nil)
	address, _ := start(t, o, nil)
	response, got := get(t, through(t, address), o.URL+"/film.mkv", "Cookie", "session=1")
	if response.StatusCode != 200 || !bytes.Equal(got, file) || response.Header.Get("Content-Security-Policy") != "" {
		t.Fatalf("%s, %d bytes", response.Status, len(got))
	}
	if n := o.ranges(); n < 3 {
		t.Errorf("%d range requests were made, want several", n)
	}
	for _, r := range o.seen() {
		if r.Header.Get("Cookie") != "session=1" {
			t.Errorf("the origin got %v", r.Header)
		}
	}
}
