package transport

import (
	"mime"
	"net/http"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/linklab/linklab/client/internal/printable"
)

// dispositionName returns the file name that an answer proposes (RFC 6266), reduced to the
// last part of a path. It returns "" if there is none, or if it is hidden or unprintable.
func dispositionName(header http.Header) string {
	value := header.Get("Content-Disposition")
	if value == "" {
		return ""
	}
	name := looseName(value)
	// This is filename* if that is present with a known coding (RFC 6266 4.3).
	if _, parameters, err := mime.ParseMediaType(value); err == nil {
		name = parameters["filename"]
	}
	if !utf8.ValidString(name) {
		latin := make([]rune, len(name))
		for i := range len(name) {
			latin[i] = rune(name[i])
		}
		name = string(latin)
	}
	name = strings.TrimLeft(path.Base(strings.ReplaceAll(name, `\`, "/")), ". ")
	if name = strings.TrimRight(name, ". "); name == "/" || printable.Text(name) != name {
		return ""
	}
	return name
}

// looseName reads filename=NAME without quotes, as some servers write it.
func looseName(value string) string {
	for part := range strings.SplitSeq(value, ";") {
		if name, text, ok := strings.Cut(part, "="); ok && strings.EqualFold(strings.TrimSpace(name), "filename") {
			return strings.Trim(text, "\" \t")
		}
	}
	return ""
}
