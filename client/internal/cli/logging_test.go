package cli

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/json"
	"io"
	stdlog "log"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/printable"
	"github.com/linklab/linklab/client/tests/testkit"
)

// words are sequences that control a terminal.
const words = "\x1b]0;owned\x07\u009b2J\x7f\u202eb\u2028\u2066"

// No server can fill a terminal or a disk with log lines, neither ours nor the standard library's.
func TestAFloodOfLogLinesIsBounded(t *testing.T) {
	defer stdlog.SetOutput(io.Discard)
	for _, format := range []string{"text", "json"} {
		var out bytes.Buffer
		logs := &logging{level: "debug", format: format}
		log, err := logs.logger(printable.NewWriter(&out))
		testkit.OK(t, err)
		begun := time.Now()
		for range 20_000 {
			stdlog.Printf("Unsolicited response starting with %s %s", words, strings.Repeat("x", 5000))
			log.With("link", words).Warn("a request fails", "error", words)
		}
		log.Error("seen in spite of the flood")
		logs.close()
		stdlog.Print("after the end")
		// Each of two levels may tell it once in each interval, and at the end.
		most := 2 * (int(time.Since(begun)/logInterval) + 2)
		text := out.String()
		testkit.Holds(t, len(text) <= 400_000, format, len(text))
		for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
			expectPrintable(t, "the log", line)
			if format == "json" && !json.Valid([]byte(line)) {
				t.Fatalf("%q is no JSON", line)
			}
		}
		lines := strings.Count(text, "log lines were left out")
		if lines < 2 || lines > most || !strings.Contains(text, "seen in spite of the flood") || strings.Contains(text, "after the end") {
			t.Errorf("%s: %d lines tell that others were left out, at most %d may, the end is %.300q", format, lines, most, text[max(0, len(text)-600):])
		}
	}
}

// A limit omits lines only of its own level, and every omitted line is counted.
func TestLinesThatAreLeftOutAreCounted(t *testing.T) {
	var out bytes.Buffer
	logs := &logging{level: "warn", format: "json"}
	log, err := logs.logger(&out)
	testkit.OK(t, err)
	const all = 1234
	for range all {
		log.Warn("w")
	}
	logs.close()
	written, leftOut := 0, 0
	for line := range strings.Lines(out.String()) {
		var entry struct {
			Msg   string
			Level slog.Level
			Lines int
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.Level != slog.LevelWarn {
			t.Fatalf("%q: %v", line, err)
		}
		if leftOut += entry.Lines; entry.Msg == "w" {
			written++
		}
	}
	testkit.Holds(t, written >= logBurst && written+leftOut == all, written, leftOut, all)
}

// unasked starts a server that answers each request twice. The second answer contains words, and
// net/http logs it.
func unasked(t *testing.T, config *tls.Config) (address string) {
	t.Helper()
	return testkit.Accept(t, config, func(conn net.Conn) {
		from := bufio.NewReader(conn)
		for {
			request, err := http.ReadRequest(from)
			if err != nil {
				return
			}
			io.Copy(io.Discard, request.Body)
			io.WriteString(conn, "HTTP/1.1 404 "+words+"\r\nContent-Length: 0\r\n\r\n"+words+strings.Repeat("y", 3000)+"\r\n\r\n")
		}
	})
}

// With every command, texts from servers reach the terminal as plain text.
func TestHostileWordsThroughEveryCommand(t *testing.T) {
	names, authority := otherNames(t)
	for name, config := range map[string]*tls.Config{"plain": nil, "names of another": names} {
		of := unasked(t, config)
		address := "http://" + of
		if config != nil {
			address = "https://" + of
		}
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			written(t, "file", []byte("text"))
			engine := []string{"--link", words + "=lo", "--ca-file", authority, "--give-up", "1s"}
			for _, arguments := range [][]string{
				append(engine, "get", address+"/f", "--checksum", noChecksum),
				append(engine, "get", address+"/f", "--checksum", noChecksum, "-o", words),
				append(engine, "get", address+"/f", "--checksum", noChecksum, "-o", "-"),
				append(engine, "get", address+"/f", "--checksum", words),
				append(engine, "get", words),
				append(engine, "get", address+"/f", "--checksum", noChecksum, "--algorithm", words),
				append(engine, "get", address+"/f", "--checksum", noChecksum, "--run-dir", filepath.Join("file", words)),
				append(engine, "put", "file", "https://"+of+"/f"),
				append(engine, "put", words, "https://"+of+"/f"),
				append(engine, "probe", "--server", "https://"+of+"/f", "--run-dir", "p", "--time", "1s"),
				{"workload", "rounds", address + "/f", "--size", "10", "--give-up", "1s", "--ca-file", authority},
				{words},
				{"get", "--" + words},
			} {
				for _, format := range []string{"text", "json"} {
					code, stdout, stderr := run(append(arguments, "--log-level", "debug", "--log-format", format)...)
					testkit.Holds(t, code != 0, arguments)
					expectPrintable(t, "stdout of "+strings.Join(arguments, " "), stdout)
					expectPrintable(t, "stderr of "+strings.Join(arguments, " "), stderr)
				}
			}
		})
	}
}
