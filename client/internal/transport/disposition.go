package transport

import (
	"mime"
	"net/http"
	"net/url"
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
	// This is filename* if that is present with a known coding (RFC 6266 4.3).
	_, parameters, err := mime.ParseMediaType(value)
	name := parameters["filename"]
	if err != nil {
		name = looseName(value)
	}
	if !utf8.ValidString(name) {
		name = latin1(name)
	}
	name = strings.TrimLeft(path.Base(strings.ReplaceAll(name, `\`, "/")), ". ")
	if name = strings.TrimRight(name, ". "); name == "/" || printable.Text(name) != name {
		return ""
	}
	return name
}

// looseName reads the name of a value of which other parts are malformed. It reads filename=NAME without
// quotes, as some servers write it.
func looseName(value string) (name string) {
	for value != "" {
		var part string
		part, value = cutParameter(value)
		key, text, _ := strings.Cut(part, "=")
		text = strings.Trim(text, " \t")
		switch strings.ToLower(strings.TrimSpace(key)) {
		case "filename*":
			if extended, ok := extendedValue(text); ok {
				return extended
			}
		case "filename":
			if name = strings.Trim(text, "\" \t"); strings.HasPrefix(text, `"`) {
				name = unescape.Replace(name)
			}
		}
	}
	return name
}

// unescape replaces the quoted pairs of a quoted string (RFC 9110 5.6.4).
var unescape = strings.NewReplacer(`\\`, `\`, `\"`, `"`)

// cutParameter returns what is before the first semicolon outside quotes, and the rest.
func cutParameter(value string) (part, rest string) {
	quoted := false
	for i := 0; i < len(value); i++ {
		switch {
		case value[i] == '"':
			quoted = !quoted
		case value[i] == '\\' && quoted:
			i++
		case value[i] == ';' && !quoted:
			return value[:i], value[i+1:]
		}
	}
	if quoted { // The quotes are malformed.
		part, rest, _ = strings.Cut(value, ";")
		return part, rest
	}
	return value, ""
}

// extendedValue decodes CHARSET'LANGUAGE'TEXT (RFC 8187 3.2.1).
func extendedValue(text string) (decoded string, ok bool) {
	charset, rest, _ := strings.Cut(text, "'")
	_, encoded, isExtended := strings.Cut(rest, "'")
	decoded, err := url.PathUnescape(encoded)
	switch strings.ToLower(charset) {
	case "utf-8":
		return decoded, isExtended && err == nil && utf8.ValidString(decoded)
	case "iso-8859-1":
		return latin1(decoded), isExtended && err == nil
	}
	return "", false
}

func latin1(text string) string {
	runes := make([]rune, len(text))
	for i := range len(text) {
		runes[i] = rune(text[i])
	}
	return string(runes)
}
