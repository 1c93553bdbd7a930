package printable

import (
	"fmt"
	"io"
	"strconv"
	"sync"
	"unicode/utf16"
	"unicode/utf8"
)

// Writer writes to another one what is printable, and line breaks. Everything else
// it escapes, so that JSON stays the same value (RFC 8259 7) where the encoder has
// escaped what is below U+0020. It is the one exit of a program's words: others'
// words need no care anywhere else. It may be used concurrently.
type Writer struct {
	raw io.Writer

	mu sync.Mutex
	// begun is the beginning of a character whose end is still to come.
	begun []byte
	line  []byte
}

// NewWriter returns a Writer to w.
func NewWriter(w io.Writer) *Writer { return &Writer{raw: w} }

// Raw is what a Writer writes to, for what is no words: the bytes of a file, and the
// sequences of a progress bar. Another writer is its own.
func Raw(w io.Writer) io.Writer {
	if exit, ok := w.(*Writer); ok {
		return exit.raw
	}
	return w
}

// Write implements io.Writer.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := append(w.begun, p...)
	w.line = w.line[:0]
	for len(text) > 0 && utf8.FullRune(text) {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && size == 1:
			w.line = fmt.Appendf(w.line, `\x%02x`, text[0])
		case r == '\n' || strconv.IsPrint(r):
			w.line = append(w.line, text[:size]...)
		default:
			w.line = escape(w.line, r)
		}
		text = text[size:]
	}
	w.begun = append(w.begun[:0:0], text...)
	if _, err := w.raw.Write(w.line); err != nil {
		return 0, err
	}
	return len(p), nil
}

// escape appends a character as Go and JSON write it; only Go knows \x and \a, which
// JSON does not need.
func escape(to []byte, r rune) []byte {
	if r < ' ' {
		quoted := strconv.AppendQuoteRuneToASCII(nil, r)
		return append(to, quoted[1:len(quoted)-1]...)
	}
	for _, unit := range utf16.AppendRune(nil, r) {
		to = fmt.Appendf(to, `\u%04x`, unit)
	}
	return to
}
