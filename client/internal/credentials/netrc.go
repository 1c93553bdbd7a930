package credentials

import (
	"encoding/base64"
	"errors"
	"strings"
)

// Basic returns the value of Authorization for a user (RFC 7617).
func Basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// Netrc returns user and password for a host from the text of a .netrc file. ok is false if there
// is no entry. A host's own entry precedes "default".
func Netrc(text, host string) (user, password string, ok bool, err error) {
	tokens, err := netrcTokens(text)
	if err != nil {
		return "", "", false, err
	}
	applies, isOwn := false, false
	for i := 0; i < len(tokens); i++ {
		value := ""
		if tokens[i] != "default" {
			if i+1 == len(tokens) {
				return "", "", false, errors.New("its last word has no value")
			}
			value = tokens[i+1]
		}
		switch tokens[i] {
		case "machine", "default":
			if isOwn {
				return user, password, true, nil
			}
			isOwn = tokens[i] == "machine" && strings.EqualFold(value, host)
			if applies = isOwn || tokens[i] == "default"; applies {
				user, password, ok = "", "", true
			}
		case "login":
			if applies {
				user = value
			}
		case "password":
			if applies {
				password = value
			}
		case "account":
		default:
			return "", "", false, errors.New("a word is none of machine, default, login, password, account and macdef")
		}
		if tokens[i] != "default" {
			i++
		}
	}
	return user, password, ok, nil
}

// netrcTokens returns the words of a .netrc file without comments and macros.
func netrcTokens(text string) (tokens []string, err error) {
	isMacro := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if isMacro {
			isMacro = line != ""
			continue
		}
		if strings.HasPrefix(line, "#") {
			continue
		}
		for line != "" {
			var token string
			if line[0] == '"' {
				if token, line, err = quoted(line[1:]); err != nil {
					return nil, err
				}
			} else if end := strings.IndexAny(line, " \t"); end >= 0 {
				token, line = line[:end], line[end:]
			} else {
				token, line = line, ""
			}
			line = strings.TrimLeft(line, " \t")
			if isMacro = token == "macdef"; isMacro {
				break
			}
			tokens = append(tokens, token)
		}
	}
	return tokens, nil
}

// quoted reads a word up to its closing quote.
func quoted(text string) (word, rest string, err error) {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '"':
			return out.String(), text[i+1:], nil
		case text[i] == '\\' && i+1 < len(text):
			i++
		}
		out.WriteByte(text[i])
	}
	return "", "", errors.New("a quote has no end")
}
