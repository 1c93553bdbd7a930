package cli

import "fmt"

// invalid returns an error in the value of a flag.
func invalid(flag string, value any, format string, arguments ...any) error {
	if text := fmt.Sprint(value); text != "" {
		flag += " " + text
	}
	return fmt.Errorf("--%s: %w", flag, fmt.Errorf(format, arguments...))
}
