package printable

import (
	"fmt"
	"io"
	"strconv"
	"sync"
	"unicode/utf16"
	"unicode/utf8"
)

// Writer passes printable characters and line breaks on to another writer. It escapes everything
// else so that JSON keeps its value (RFC 8259 7) if the encoder has escaped what is below U+0020.
// All text of the program leaves through it, so no other code needs to escape. It may be used
// concurrently.
type Writer struct {
	raw io.Writer

	mu sync.Mutex
	// begun is the beginning of a character whose end has not arrived.
	begun []byte
	line  []byte
}

// NewWriter returns a Writer to w.
func NewWriter(w io.Writer) *Writer { return &Writer{raw: w} }

// Raw returns the writer below a Writer, for output that is no text: the bytes of a file, and the
// control sequences of a progress bar. It returns another writer unchanged.
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

// escape appends a character as Go and JSON write it. Only Go knows \x and \a, which JSON does not
// need.
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
