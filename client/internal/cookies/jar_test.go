package cookies

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func at(text string) *url.URL {
	u, err := url.Parse(text)
	if err != nil {
		panic(err)
	}
	return u
}

func sent(j *Jar, to string) string {
	var all []string
	for _, c := range j.Cookies(at(to)) {
		all = append(all, c.Name+"="+c.Value)
	}
	return strings.Join(all, "; ")
}

const file = "# Netscape HTTP Cookie File\n" +
	"#HttpOnly_.example.com\tTRUE\t/\tTRUE\t4102444800\twide\t1\n" +
	"www.example.com\tFALSE\t/a\tFALSE\t0\tnarrow\t2\n"

func TestCookiesTxt(t *testing.T) {
	j := New()
	if err := j.Read(file + "old.test\tFALSE\t/\tFALSE\t1\told\t3\n\n192.0.2.1\tTRUE\t/\tFALSE\t0\tip\t4\r\n"); err != nil {
		t.Fatal(err)
	}
	for to, want := range map[string]string{
		"https://www.example.com/a/b": "narrow=2; wide=1", "https://other.example.com/": "wide=1",
		"http://www.example.com/a": "narrow=2", "https://example.org/": "", "https://old.test/": "", "https://192.0.2.1/": "ip=4",
	} {
		if got := sent(j, to); got != want {
			t.Errorf("%s gets %q, want %q", to, got, want)
		}
	}
	again := New()
	if err := again.Read(string(j.Text())); err != nil || string(again.Text()) != string(j.Text()) || !strings.Contains(string(j.Text()), file[len("# Netscape HTTP Cookie File\n"):strings.Index(file, "www")]) {
		t.Errorf("written as %q, read again as %q (error %v)", j.Text(), again.Text(), err)
	}
	for text, want := range map[string]string{
		"a b c":                              "line 1 has 1 fields: allowed are 7",
		"\na\tTRUE\t/\tTRUE\tsoon\tn\tv":     "line 2: the fifth field is no time",
		"a\tTRUE\t/\tTRUE\t0\tn m\tv":        "line 1 holds no valid cookie",
		"a\tTRUE\t/\tTRUE\t0\tn\tv;\tsecret": "line 1 has 8 fields",
	} {
		if err := New().Read(text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: error %v, want %s", text, err, want)
		}
	}
}

// A server's cookies are kept if it may set them.
func TestCookiesOfServers(t *testing.T) {
	j := New()
	from := at("https://www.example.co.uk/dir/file")
	j.SetCookies(from, []*http.Cookie{
		{Name: "mine", Value: "1"}, {Name: "below", Value: "2", Domain: "example.co.uk", Path: "/", MaxAge: 60},
		{Name: "foreign", Value: "3", Domain: "example.org"}, {Name: "all", Value: "4", Domain: "co.uk"},
		{Name: "gone", Value: "5"}, {Name: "forged", Value: "6", Path: "/\tTRUE\t0\tx\ty"},
	})
	j.SetCookies(from, []*http.Cookie{{Name: "gone", MaxAge: -1}})
	text := string(j.Text())
	for name, want := range map[string]bool{"mine": true, "below": true, "foreign": false, "all": false, "gone": false, "forged": false} {
		if strings.Contains(text, "\t"+name+"\t") != want {
			t.Errorf("%s is written: %v in %q", name, !want, text)
		}
	}
	if !strings.Contains(text, "www.example.co.uk\tFALSE\t/dir\tFALSE\t0\tmine\t1\n") {
		t.Errorf("written is %q", text)
	}
	for i := range most + 100 {
		j.SetCookies(from, []*http.Cookie{{Name: fmt.Sprintf("n%d", i), Value: "v"}})
	}
	if len(j.kept) > most+1 { // One belongs to the domain above.
		t.Errorf("%d cookies are kept", len(j.kept))
	}
}
