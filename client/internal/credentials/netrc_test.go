package credentials

import "testing"

func TestNetrc(t *testing.T) {
	const text = `# a comment
machine a.test login ann password "pass word\""
machine b.test
	login bob
	account x
	password #1
macdef init
machine c.test login evil

default login any password one
machine c.test login cid
`
	for host, want := range map[string][2]string{
		"a.test": {"ann", `pass word"`}, "A.TEST": {"ann", `pass word"`}, "c.test": {"cid", ""}, "d.test": {"any", "one"},
	} {
		if user, password, ok, err := Netrc(text, host); !ok || err != nil || user != want[0] || password != want[1] {
			t.Errorf("%s has %q and %q (%v, %v), want %q", host, user, password, ok, err, want)
		}
	}
	if _, _, ok, err := Netrc("machine a.test login x", "b.test"); ok || err != nil {
		t.Errorf("a host without an entry has one: %v, %v", ok, err)
	}
	for _, wrong := range []string{"machine", "machine a login", `machine "a`, "host a login b"} {
		if _, _, _, err := Netrc(wrong, "a"); err == nil {
			t.Errorf("%q is read", wrong)
		}
	}
}
