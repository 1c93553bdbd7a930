package cli

import "fmt"

// flagError is an error in the value of a flag.
type flagError struct {
	flag, value string
	err         error
}

// invalid returns a flagError with a formatted reason.
func invalid(flag string, value any, format string, arguments ...any) error {
	return &flagError{flag, fmt.Sprint(value), fmt.Errorf(format, arguments...)}
}

func (e *flagError) Error() string {
	if e.value == "" {
		return fmt.Sprintf("--%s: %v", e.flag, e.err)
	}
	return fmt.Sprintf("--%s %s: %v", e.flag, e.value, e.err)
}

func (e *flagError) Unwrap() error { return e.err }
