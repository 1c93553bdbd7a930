package credentials

import (
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/linklab/linklab/client/tests/testkit"
)

func TestCut(t *testing.T) {
	for text, want := range map[string][2]string{
		"https://h/f?q#x":                   {"https://h/f?q#x", ""},
		"https://Aladdin:open%20sesame@h/f": {"https://h/f", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="}, // RFC 7617 2
		"https://token@h:1/f@g":             {"https://h:1/f@g", "Basic dG9rZW46"},
		"https://:pass@h/":                  {"https://h/", "Basic OnBhc3M="},
		"https://@h/":                       {"https://h/", ""},
	} {
		u, err := url.Parse(text)
		testkit.OK(t, err)
		public, authorization := Cut(u)
		if public.String() != want[0] || authorization != want[1] || u.String() != text && text != "https://@h/" {
			t.Errorf("Cut(%s) = %s, %q, want %q; the URL is %s", text, public, authorization, want, u)
		}
	}
}

func TestHide(t *testing.T) {
	for text, want := range map[string]string{
		"https://h/f@g":                 "https://h/f@g",
		"https://user:secret@h/f@g?q":   "https://h/f@g?q",
		"https://secret@h":              "https://h",
		"https://user:sec/ret@h/f":      "https://…@h/f",
		"https://user:se%ret@h/f":       "https://…@h/f",
		"https://user:se#ret@h/f":       "https://…@h/f",
		"https://user:secret@h:port/f":  "https://…@h:port/f",
		"https://a:secret@h:secret@h/f": "https://h/f",
		"user:secret@h/f":               "…@h/f",
		"https:user:secret@h/f":         "…@h/f",
		"//user:secret@h/f":             "…@h/f",
		"ftp://user:secret@h/f":         "ftp://…@h/f",
		"nonsense":                      "nonsense",
		"":                              "",
	} {
		testkit.Same(t, Hide(text), want, text)
	}
}

// The test runs this program again, to read its arguments as ps does.
func TestHideArgument(t *testing.T) {
	if os.Getenv("HIDE_ARGUMENT") != "" {
		for _, argument := range os.Args[1:] {
			HideArgument(argument)
		}
		HideArgument(strings.Clone("https://user:secret@h/")) // as good as in read-only memory
		shown, err := os.ReadFile("/proc/self/cmdline")
		testkit.OK(t, err)
		os.Stdout.Write(shown)
		os.Exit(0)
	}
	arguments := []string{"-test.run=TestHideArgument", "https://user:secret@h/f@g", "https://h/f@g", "https://h?user@x", "https://@h/", "https://user@h", "nonsense@x"}
	command := exec.Command(os.Args[0], arguments...)
	command.Env = append(os.Environ(), "HIDE_ARGUMENT=1")
	output, err := command.Output()
	testkit.OK(t, err)
	want := append([]string{os.Args[0]}, arguments...)
	want[2], want[6] = "https://***********@h/f@g", "https://****@h"
	testkit.Same(t, strings.TrimSuffix(string(output), "\x00"), strings.Join(want, "\x00"), want)
}
