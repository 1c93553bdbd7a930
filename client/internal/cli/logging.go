package cli

import (
	"context"
	"io"
	stdlog "log"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/time/rate"
)

// Each level may write so many lines at once, and then one in each interval. A server or a
// program could cause a line with every byte that it sends.
const (
	logBurst    = 100
	logInterval = time.Second
)

// mostLogged limits how much of a line of the standard library is logged, in bytes.
const mostLogged = 500

// logging configures which log lines are written, and how.
type logging struct {
	level, format string
	handler       *limitedHandler
}

func (l *logging) register(flags *pflag.FlagSet) {
	flags.StringVar(&l.level, "log-level", "warn", "least level of log lines on stderr: debug, info, warn, error")
	flags.StringVar(&l.format, "log-format", "text", "form of log lines: text, json")
}

// logger returns the logger that writes to w. It also gets the standard library's log as debug
// lines, which report servers that send unrequested answers.
func (l *logging) logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.level)); err != nil {
		return nil, usagef("--log-level %s: allowed are debug, info, warn, error", l.level)
	}
	options := &slog.HandlerOptions{Level: level}
	var handler slog.Handler
	switch l.format {
	case "text":
		handler = slog.NewTextHandler(w, options)
	case "json":
		handler = slog.NewJSONHandler(w, options)
	default:
		return nil, usagef("--log-format %s: allowed are text and json", l.format)
	}
	l.close()
	l.handler = newLimitedHandler(handler)
	log := slog.New(l.handler)
	stdlog.SetFlags(0)
	stdlog.SetOutput(standardLog{log})
	return log, nil
}

// close writes how many lines were omitted.
func (l *logging) close() {
	if l.handler != nil {
		l.handler.flush()
		stdlog.SetOutput(io.Discard)
	}
}

// standardLog receives the lines of the standard library's log.
type standardLog struct{ log *slog.Logger }

func (s standardLog) Write(p []byte) (int, error) {
	text := strings.ToValidUTF8(string(p[:min(len(p), mostLogged)]), "\ufffd")
	level := slog.LevelDebug
	if strings.HasPrefix(text, "http: panic ") {
		level = slog.LevelError // An error of this program in code that serves requests.
	}
	s.log.Log(context.Background(), level, "the standard library says", "text", strings.TrimSuffix(text, "\n"))
	return len(p), nil
}

// limitedHandler omits lines above a limit, and writes how many.
type limitedHandler struct {
	slog.Handler
	*limits
}

// limits holds the limits of a log's levels.
type limits struct {
	mu     sync.Mutex
	levels map[slog.Level]*levelLimit
}

type levelLimit struct {
	may     *rate.Limiter
	leftOut int
	// by is the handler of the first omitted line.
	by slog.Handler
}

func newLimitedHandler(to slog.Handler) *limitedHandler {
	return &limitedHandler{to, &limits{levels: map[slog.Level]*levelLimit{}}}
}

// Handle writes a line unless that exceeds the limit.
func (h *limitedHandler) Handle(ctx context.Context, r slog.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	level := h.levels[r.Level]
	if level == nil {
		level = &levelLimit{may: rate.NewLimiter(rate.Every(logInterval), logBurst)}
		h.levels[r.Level] = level
	}
	if !level.may.Allow() {
		level.leftOut++
		level.by = h.Handler
		return nil
	}
	level.tell(r.Level)
	return h.Handler.Handle(ctx, r)
}

// tell writes how many lines were omitted.
func (l *levelLimit) tell(level slog.Level) {
	if l.leftOut == 0 {
		return
	}
	r := slog.NewRecord(time.Now(), level, "log lines were left out: there were too many", 0)
	r.AddAttrs(slog.Int("lines", l.leftOut))
	_ = l.by.Handle(context.Background(), r)
	l.leftOut = 0
}

// flush writes for every level how many lines were omitted.
func (h *limitedHandler) flush() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for level, l := range h.levels {
		l.tell(level)
	}
}

// WithAttrs implements slog.Handler.
func (h *limitedHandler) WithAttrs(attributes []slog.Attr) slog.Handler {
	return &limitedHandler{h.Handler.WithAttrs(attributes), h.limits}
}

// WithGroup implements slog.Handler.
func (h *limitedHandler) WithGroup(name string) slog.Handler {
	return &limitedHandler{h.Handler.WithGroup(name), h.limits}
}
