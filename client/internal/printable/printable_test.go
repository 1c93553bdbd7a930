package printable

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/linklab/linklab/client/tests/testkit"
)

// hostile has characters that control a terminal: ESC, BEL, CSI of C1, DEL, a change of direction
// and a byte that is no UTF-8.
const hostile = "a\x1b]0;title\x07\u009b31m\x7f\u202eb\xff"

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		hostile:            `a\x1b]0;title\a\u009b31m\x7f\u202eb\xff`,
		"404 Not Found":    "404 Not Found",
		"größer 文件 🙂 a\\b": "größer 文件 🙂 a\\b",
		"one\ntwo\tthree":  `one\ntwo\tthree`,
		"\U000e0001":       `\U000e0001`,
		"":                 "",
	} {
		testkit.Same(t, Text(text), want, text)
	}
	testkit.Same(t, Lines("one\r\ntwo"), `one\r`+"\ntwo")
}

func TestQuoteAndErrorAreBounded(t *testing.T) {
	testkit.Same(t, Quote(`W/"1"`+"\x1b"), `"W/\"1\"\x1b"`)
	if got, want := Quote(strings.Repeat("é", 1e6)), `"`+strings.Repeat("é", mostQuoted)+`"…`; got != want {
		t.Errorf("Quote of a million characters gives %d bytes", len(got))
	}
	inner := errors.New("malformed: \x1b[2J\n" + strings.Repeat("x", 1e6))
	err := Error(inner)
	if got := err.Error(); !strings.HasPrefix(got, `malformed: \x1b[2J\nxx`) || len(got) > 2*mostError {
		t.Errorf("Error gives %d bytes: %.50q", len(got), got)
	}
	testkit.Holds(t, errors.Is(err, inner) && Error(nil) == nil, "Error hides what it wraps")
}

// The output of a Writer does not depend on the division into writes.
func TestAWriterEscapesWhateverTheCuts(t *testing.T) {
	text := hostile + "größer 文件 🙂 \U000e0001\n"
	want := `a\x1b]0;title\a\u009b31m\u007f\u202eb\xffgrößer 文件 🙂 \udb40\udc01` + "\n"
	for size := 1; size <= len(text); size++ {
		var out strings.Builder
		w := NewWriter(&out)
		for from := 0; from < len(text); from += size {
			part := text[from:min(from+size, len(text))]
			if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
				t.Fatalf("Write returns %d, %v", n, err)
			}
		}
		testkit.Same(t, out.String(), want, size)
	}
}

func TestJSONIsTheSameValue(t *testing.T) {
	var out strings.Builder
	value := map[string]string{"error": hostile[:len(hostile)-1] + "größer \U000e0001\n"}
	encoder := json.NewEncoder(NewWriter(&out))
	encoder.SetIndent("", "  ")
	testkit.OK(t, encoder.Encode(value))
	want := "{\n  \"error\": \"a\\u001b]0;title\\u0007\\u009b31m\\u007f\\u202ebgrößer \\udb40\\udc01\\n\"\n}\n"
	testkit.Same(t, out.String(), want)
	var back map[string]string
	if err := json.Unmarshal([]byte(out.String()), &back); err != nil || back["error"] != value["error"] {
		t.Errorf("read back is %q (%v)", back, err)
	}
}
