package proxy

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/linklab/linklab/client/tests/testkit"
)

// A body without length that ends without close_notify may be truncated. The client notices
// because its body breaks off. With close_notify the body is complete. Without TLS nothing can
// be detected, and HTTP accepts the body.
func TestABodyThatMayBeTruncatedBreaksOff(t *testing.T) {
	for name, test := range map[string]struct{ secure, goodbye, cut bool }{
		"close_notify":    {true, true, false},
		"no close_notify": {true, false, true},
		"no TLS":          {false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := version{http2: false}.serveAs(t, test.secure, func(w http.ResponseWriter, _ *http.Request) {
				conn, _, err := w.(http.Hijacker).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nETag: \"1\"\r\n\r\n")
				conn.Write(file[:100_000])
				if secure, ok := conn.(*tls.Conn); ok && !test.goodbye {
					conn = secure.NetConn()
				}
				conn.Close()
			})
			var log testkit.Text
			address, _ := start(t, o, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
			// A POST uses one link. A GET begins as a range over many.
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				request, err := http.NewRequest(method, "http://"+address+"/"+o.URL+"/f", http.NoBody)
				testkit.OK(t, err)
				response, err := direct(t).Do(request)
				testkit.OK(t, err)
				got, err := io.ReadAll(response.Body)
				response.Body.Close()
				if cut := errors.Is(err, io.ErrUnexpectedEOF); cut != test.cut || !cut && (err != nil || !bytes.Equal(got, file[:100_000])) {
					t.Errorf("%s: %d bytes, %v", method, len(got), err)
				}
			}
			if said := strings.Count(log.String(), errTruncated.Error()); (said == 2) != test.cut || (said == 0) == test.cut {
				t.Errorf("%d lines of the log say that an answer is cut off:\n%s", said, &log)
			}
		})
	}
}
