package cli

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/testkit"
)

// behindBlackHole serves a file over both families, and accepts one. Its certificate is longer than a
// packet.
func behindBlackHole(t *testing.T, content []byte, v4, v6 net.Listener) (flags []string, put *bytes.Buffer) {
	t.Helper()
	certificate := testkit.LongCertificate()
	authority := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(authority, testkit.PEM(certificate), 0o600); err != nil {
		t.Fatal(err)
	}
	put = new(bytes.Buffer)
	var mu sync.Mutex
	server := &http.Server{
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPut {
				w.Header().Set("ETag", `"1"`)
				http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if r.Header.Get("Content-Range") != "" {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			put.Reset()
			io.Copy(put, r.Body)
			w.WriteHeader(http.StatusCreated)
		}),
	}
	go server.ServeTLS(v4, "", "")
	go server.ServeTLS(v6, "", "")
	t.Cleanup(func() { server.Close() })
	return []string{"--link", "near", "--ca-file", authority, "--dns", testkit.Names(t, testkit.Far4, testkit.Far6)}, put
}

// A path-MTU black hole in IPv6 costs a download and an upload little time, even without IPv4.
func TestAPathMTUBlackHole(t *testing.T)            { passBlackHole(t, true) }
func TestAPathMTUBlackHoleOnTheWayOut(t *testing.T) { passBlackHole(t, false) }

func passBlackHole(t *testing.T, towards bool) {
	if testkit.Again(t) {
		return
	}
	const limit = 6 * time.Second
	v4, v6 := testkit.Lay(t, towards)
	content := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	flags, put := behindBlackHole(t, content, v4, v6)
	flags = append(flags, "--give-up", "20s", "--log-level", "error")
	own := filepath.Join(t.TempDir(), "own")
	if err := os.WriteFile(own, content, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, family := range [][]string{nil, {"-4"}, {"-6"}} {
		copied := own + ".copy" + fmt.Sprint(len(family), family)
		for _, command := range [][]string{{"get", "https://host1.example/f", "-o", copied}, {"put", own, "https://host1.example/f"}} {
			start := time.Now()
			code, _, stderr := run(append(append(command, flags...), family...)...)
			if took := time.Since(start); code != 0 || took > limit {
				t.Errorf("%s %v: exit code %d after %v, stderr %q", command[0], family, code, took, stderr)
			}
		}
		if got, err := os.ReadFile(copied); err != nil || !bytes.Equal(got, content) {
			t.Errorf("%v: the file has %d bytes, %v", family, len(got), err)
		}
		if !bytes.Equal(put.Bytes(), content) {
			t.Errorf("%v: the server got %d bytes", family, put.Len())
		}
		put.Reset()
	}
}
