// Package printable makes text that others wrote, such as a server, fit to be
// shown: on a terminal control characters move the cursor, rename the window
// or type for the user, and others turn the direction of what follows. Writer does
// that at the exit of the program. The functions bound what is carried there, and
// keep it on one line.
package printable

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// mostQuoted and mostError are how many characters of a value, and of an
// error, are shown: a server may send megabytes.
const (
	mostQuoted = 200
	mostError  = 1000
)

// Text escapes what is not printable (strconv.IsPrint), line breaks included,
// as Go writes it in strings.
func Text(s string) string {
	return text(s, func(r rune) bool { return strconv.IsPrint(r) })
}

// Lines is Text that leaves line breaks as they are.
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

// Message is Text of the beginning of a message.
func Message(s string) string {
	s, rest := cut(s, mostError)
	return Text(s) + rest
}

// Error is an error whose text is a Message.
func Error(err error) error {
	if err == nil {
		return nil
	}
	return shown{err}
}

type shown struct{ error }

func (e shown) Error() string { return Message(e.error.Error()) }

func (e shown) Unwrap() error { return e.error }

// cut returns the first most characters, and what tells that there are more.
func cut(s string, most int) (begin, rest string) {
	n := 0
	for i := range s {
		if n++; n > most {
			return s[:i], "…"
		}
	}
	return s, ""
}
