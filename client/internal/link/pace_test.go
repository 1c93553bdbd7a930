package link

import (
	"context"
	"io"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/linklab/linklab/client/tests/testkit"
)

// endedSocket is a connection that the server has ended.
type endedSocket struct{ Socket }

func (endedSocket) Read([]byte) (int, error) { return 0, io.EOF }

// A program's connection shows that its server works again. Its end shows nothing.
func TestAProgramsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var refused error = syscall.ECONNREFUSED
		dial := NewPacer().Dialer("wifi", func(context.Context, string) (Socket, error) { return endedSocket{}, refused })
		for range mostTries {
			_, err := dial(t.Context(), "server:1")
			testkit.Same(t, err, refused, "refused")
		}
		time.Sleep(pauseBetween)
		refused = nil
		conn, err := dial(t.Context(), "server:1")
		testkit.OK(t, err)
		conn.Trial().Release()
		_, err = conn.Read(nil)
		testkit.Same(t, err, io.EOF, "the end")
		_, err = dial(t.Context(), "server:1") // It has no outcome yet.
		testkit.OK(t, err)
		_, err = dial(t.Context(), "server:1")
		testkit.Same(t, Wait(err), mostUnknown, "wait")
	})
}
