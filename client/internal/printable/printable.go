// Package printable makes text from others, such as a server, safe to show. On a terminal, control
// characters move the cursor, rename the window or type for the user. Other characters change the
// direction of the following text. Writer escapes them at the exit of the program. The functions
// also limit the length of a text and keep it on one line.
package printable

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// mostQuoted and mostError limit how many characters of a value and of an error are shown:
// a server may send megabytes.
const (
	mostQuoted = 200
	mostError  = 1000
)

// Text escapes unprintable characters (strconv.IsPrint) and line breaks, as Go writes them in
// strings.
func Text(s string) string {
	return text(s, func(r rune) bool { return strconv.IsPrint(r) })
}

// Lines is Text with line breaks left unchanged.
func Lines(s string) string {
	return text(s, func(r rune) bool { return r == '\n' || strconv.IsPrint(r) })
}

func text(s string, asIs func(rune) bool) string {
	var b strings.Builder
	for i, r := range s {
		_, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			b.WriteString(`\x` + strconv.FormatUint(uint64(s[i]), 16))
		case asIs(r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}

// Quote returns the beginning of a value in quotes.
func Quote(s string) string {
	s, rest := cut(s, mostQuoted)
	return strconv.Quote(s) + rest
}

// Message returns the beginning of a message, escaped by Text.
func Message(s string) string {
	s, rest := cut(s, mostError)
	return Text(s) + rest
}

// Error returns an error whose text is a Message.
func Error(err error) error {
	if err == nil {
		return nil
	}
	return shown{err}
}

type shown struct{ error }

func (e shown) Error() string { return Message(e.error.Error()) }

func (e shown) Unwrap() error { return e.error }

// cut returns the first most characters, and a mark if there are more.
func cut(s string, most int) (begin, rest string) {
	n := 0
	for i := range s {
		if n++; n > most {
			return s[:i], "…"
		}
	}
	return s, ""
}
