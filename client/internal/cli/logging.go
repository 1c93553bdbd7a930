package cli

import (
	"io"
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/linklab/linklab/client/internal/printable"
)

// logging says which log lines are written and how.
type logging struct {
	level, format string
}

func (l *logging) register(flags *pflag.FlagSet) {
	flags.StringVar(&l.level, "log-level", "warn", "least level of log lines on stderr: debug, info, warn, error")
	flags.StringVar(&l.format, "log-format", "text", "form of log lines: text, json")
}

// logger returns the logger that writes to w.
func (l *logging) logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.level)); err != nil {
		return nil, usagef("--log-level %s: allowed are debug, info, warn, error", l.level)
	}
	options := &slog.HandlerOptions{Level: level}
	switch l.format {
	case "text":
		return slog.New(slog.NewTextHandler(w, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(printable.JSON(w), options)), nil
	}
	return nil, usagef("--log-format %s: allowed are text and json", l.format)
}
