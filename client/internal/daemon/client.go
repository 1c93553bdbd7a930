package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"

	"github.com/linklab/linklab/client/internal/unixsocket"
)

// Client is a client of a daemon.
type Client struct{ http http.Client }

// NewClient returns a client of the daemon that listens on the UNIX socket at path. The caller must
// close it.
func NewClient(path string) *Client {
	return &Client{http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := unixsocket.Dial(ctx, path)
			if err != nil {
				return nil, fmt.Errorf("no daemon answers on %s (multilink serve starts one): %w", path, err)
			}
			return conn, nil
		},
	}}}
}

// Close ends the connection.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Add adds a download to the queue.
func (c *Client) Add(ctx context.Context, r Request) (d Download, err error) {
	body, err := json.Marshal(r)
	if err != nil {
		return d, err
	}
	err = c.call(ctx, http.MethodPost, "/downloads", body, &d)
	return d, err
}

// List returns all downloads, the oldest first.
func (c *Client) List(ctx context.Context) ([]Download, error) {
	var answer struct{ Downloads []Download }
	err := c.call(ctx, http.MethodGet, "/downloads", nil, &answer)
	return answer.Downloads, err
}

// Get returns one download.
func (c *Client) Get(ctx context.Context, id int) (d Download, err error) {
	err = c.call(ctx, http.MethodGet, "/downloads/"+strconv.Itoa(id), nil, &d)
	return d, err
}

// Wait returns a download after it has ended.
func (c *Client) Wait(ctx context.Context, id int) (d Download, err error) {
	err = c.call(ctx, http.MethodGet, "/downloads/"+strconv.Itoa(id)+"?wait=true", nil, &d)
	return d, err
}

// Cancel ends a download and returns it.
func (c *Client) Cancel(ctx context.Context, id int) (d Download, err error) {
	err = c.call(ctx, http.MethodDelete, "/downloads/"+strconv.Itoa(id), nil, &d)
	return d, err
}

// Links returns the links' accounts.
func (c *Client) Links(ctx context.Context) ([]LinkStatus, error) {
	var answer struct{ Links []LinkStatus }
	err := c.call(ctx, http.MethodGet, "/links", nil, &answer)
	return answer.Links, err
}

func (c *Client) call(ctx context.Context, method, path string, body []byte, into any) error {
	request, err := http.NewRequestWithContext(ctx, method, "http://multilink"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := c.http.Do(request)
	if err != nil {
		// The URL that net/http adds to an error has no meaning here.
		if inner := errors.Unwrap(err); inner != nil {
			err = inner
		}
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode/100 != 2 {
		var refusal struct{ Error string }
		if json.Unmarshal(text, &refusal) != nil || refusal.Error == "" {
			return fmt.Errorf("the daemon answers %s", response.Status)
		}
		return errors.New(refusal.Error)
	}
	return json.Unmarshal(text, into)
}
