package transport

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/linklab/linklab/client/internal/credentials"
	"github.com/linklab/linklab/client/internal/printable"
	"github.com/linklab/linklab/client/internal/weburl"
)

// ErrTooLong means that a body continues after the end of the requested range.
var ErrTooLong = errors.New("the response is longer than the requested range")

// ErrNoRanges means that the server answers a range request with the whole file.
var ErrNoRanges = errors.New("the server ignores Range and answers with the whole file (200): it does not serve ranges")

// unsuited is the error of an answer to a range request that brings other bytes, or does not
// prove which bytes it brings. It counts as ErrNoRanges: a plain GET may bring the file.
type unsuited struct{ reason string }

func (e *unsuited) Error() string { return e.reason }

func (e *unsuited) Is(target error) bool { return target == ErrNoRanges }

func doesNotSuit(format string, arguments ...any) error {
	return &unsuited{printable.Message(fmt.Sprintf(format, arguments...))}
}

// MismatchError means that an answer does not belong to the resource. A retry over the same
// link would fail again.
type MismatchError struct {
	reason string
	// SameSize is true if only the validator differs: the file changed, or a mirror gives
	// the same file another validator.
	SameSize bool
	// Server is the address of the server that answered, "" if unknown.
	Server string
}

func (e *MismatchError) Error() string { return e.reason }

func mismatch(format string, arguments ...any) error {
	return &MismatchError{reason: printable.Message(fmt.Sprintf(format, arguments...))}
}

// otherValidator returns the error of an answer with the same size and another validator.
func otherValidator(format string, arguments ...any) error {
	return &MismatchError{reason: printable.Message(fmt.Sprintf(format, arguments...)), SameSize: true}
}

// RefusesRanges reports whether a plain GET may succeed after a range request got this status.
// A server that asks for a login, or asks to wait, refuses a plain GET as well.
func RefusesRanges(code int) bool {
	switch code {
	case http.StatusUnauthorized, http.StatusProxyAuthRequired, http.StatusTooManyRequests:
		return false
	}
	return code >= http.StatusBadRequest
}

// StatusError is an answer without success.
type StatusError struct {
	Method string
	Code   int
	Status string
	// RetryAfter is the time that the server asks to wait, 0 if none.
	RetryAfter time.Duration
}

func (e *StatusError) Error() string {
	if e.Method == http.MethodHead {
		return "the server answers HEAD with " + e.status()
	}
	return "the server answers " + e.status()
}

// status returns the code with its usual phrase, or with the server's phrase in quotes.
func (e *StatusError) status() string {
	usual := http.StatusText(e.Code)
	code := strconv.Itoa(e.Code)
	switch phrase := strings.TrimPrefix(strings.TrimPrefix(e.Status, code), " "); phrase {
	case "":
		return code
	case usual:
		return code + " " + usual
	default:
		return code + " " + printable.Quote(phrase)
	}
}

// Temporary reports whether the same request may succeed later.
func (e *StatusError) Temporary() bool {
	switch e.Code {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// RedirectError holds the URL to which the server redirects.
type RedirectError struct{ Location *url.URL }

func (e *RedirectError) Error() string {
	return printable.Message(fmt.Sprintf("the server redirects to %s", e.Location))
}

// failure returns the error of a response that is neither 200 nor 206.
func failure(response *http.Response) error {
	switch response.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		text := response.Header.Get("Location")
		location, err := weburl.Resolve(response.Request.URL, text)
		switch {
		case text == "":
			return mismatch("the server redirects without saying where to (no Location)")
		case err != nil:
			return mismatch("the server redirects to %q, which is no URL: %v", credentials.Hide(text), err)
		}
		// Credentials from a server are never used.
		location, _ = credentials.Cut(location)
		if location.Scheme != response.Request.URL.Scheme && location.Scheme != "https" || location.Hostname() == "" {
			return mismatch("the server redirects to %s: allowed is https", location)
		}
		return &RedirectError{location}
	}
	return &StatusError{
		Method:     response.Request.Method,
		Code:       response.StatusCode,
		Status:     response.Status,
		RetryAfter: retryAfter(response.Header.Get("Retry-After"), time.Now()),
	}
}

// mostRetryAfter limits Retry-After to the largest number of seconds of 31 bits. A date may
// be later. The sum with a time does not overflow.
const mostRetryAfter = (1<<31 - 1) * time.Second

// retryAfter reads seconds or a date (RFC 9110 10.2.3). It returns 0 for other values and
// for the past.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if date, err := http.ParseTime(value); err == nil {
		return min(max(0, date.Sub(now)), mostRetryAfter)
	}
	return 0
}
