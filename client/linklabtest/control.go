package linklabtest

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	// tokenVariable is the environment variable with the token of a lab, whose owner may change it.
	tokenVariable = "LINKLAB_LIVE_TOKEN"
	// tokenHeader is the header in which a change of a link has the token.
	tokenHeader = "X-Linklab"
	// answerTime is the longest time for an answer of the lab.
	answerTime = 10 * time.Second
	// mostBytes is the most bytes read of an answer. The metrics are the longest, some 100 kB.
	mostBytes = 1 << 24
)

// A control reads and changes a lab over HTTP.
type control struct {
	url, token string
	client     *http.Client
}

func newControl(address string) *control {
	return &control{
		url:   "http://" + address,
		token: rand.Text(),
		// The lab is on this machine, so no proxy of the environment leads to it.
		client: &http.Client{Timeout: answerTime, Transport: &http.Transport{DisableKeepAlives: true}},
	}
}

// hasLinks tells whether the links have their first state.
func (c *control) hasLinks() bool { return strings.Contains(c.metrics(), "\nlinklab_link_up{") }

// ways returns the URLs of the proxies by link ("" for all links), and of the origins.
func (c *control) ways() (proxies map[string]string, origins []string, err error) {
	var status struct {
		Proxies map[string]string
		Origins []string
	}
	content, err := c.get("/status")
	if err == nil {
		err = json.Unmarshal(content, &status)
	}
	if err == nil && status.Proxies[""] == "" {
		err = errors.New("it names no proxy; this linklab is too old")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("the lab's status: %w", err)
	}
	return status.Proxies, status.Origins, nil
}

// change changes a link. The lab answers when it has applied the change. Its errors have the texts
// of `linklab link`.
func (c *control) change(link string, change Change) error {
	content, err := json.Marshal(change.body(link))
	if err != nil {
		return err
	}
	request, err := http.NewRequest(http.MethodPost, c.url+"/change", bytes.NewReader(content))
	if err != nil {
		return err
	}
	request.Header.Set(tokenHeader, c.token)
	answer, err := c.client.Do(request)
	if err != nil {
		return fmt.Errorf("no live lab answers: %w", err)
	}
	defer answer.Body.Close()
	var said struct{ Done, Error string }
	if err := json.NewDecoder(io.LimitReader(answer.Body, mostBytes)).Decode(&said); err != nil {
		return fmt.Errorf("no live lab answers: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		return errors.New(said.Error)
	}
	return nil
}

// metrics returns the lab's metrics, "" if it does not answer.
func (c *control) metrics() string {
	content, err := c.get("/metrics")
	if err != nil {
		return ""
	}
	return string(content)
}

func (c *control) get(path string) ([]byte, error) {
	answer, err := c.client.Get(c.url + path)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, errors.New(answer.Status)
	}
	return io.ReadAll(io.LimitReader(answer.Body, mostBytes))
}
