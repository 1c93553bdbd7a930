package testkit

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// mostShown is the most bytes of a value that a failed comparison prints.
const mostShown = 400

// OK ends the test if err is an error.
func OK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Same fails the test if got is not want. The context says which case of the test this was.
func Same[T comparable](t testing.TB, got, want T, context ...any) {
	t.Helper()
	report(t, got == want, got, want, context)
}

// SameList is Same for slices. A nil slice equals an empty one.
func SameList[S ~[]E, E comparable](t testing.TB, got, want S, context ...any) {
	t.Helper()
	report(t, slices.Equal(got, want), got, want, context)
}

// Alike is Same for values of all types, by reflect.DeepEqual.
func Alike(t testing.TB, got, want any, context ...any) {
	t.Helper()
	report(t, reflect.DeepEqual(got, want), got, want, context)
}

// Holds fails the test if a condition does not hold. The context are the values that explain why.
func Holds(t testing.TB, condition bool, context ...any) {
	t.Helper()
	if !condition {
		t.Errorf("it does not hold: %s", show(context))
	}
}

func report(t testing.TB, same bool, got, want any, context []any) {
	t.Helper()
	if same {
		return
	}
	t.Errorf("%s: got %s, want %s", show(context), show([]any{got}), show([]any{want}))
}

// show returns values as text, cut to what one can read.
func show(values []any) string {
	var said []string
	for _, value := range values {
		form := "%+v"
		switch value.(type) {
		case string, []string, []byte:
			form = "%q"
		}
		said = append(said, fmt.Sprintf("%.*s", mostShown, fmt.Sprintf(form, value)))
	}
	return strings.Join(said, ", ")
}
