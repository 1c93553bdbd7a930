package linklabtest

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

const (
	// tokenVariable is the environment variable with the token of a lab, whose owner may change it.
	tokenVariable = "LINKLAB_LIVE_TOKEN"
	// proofHeader is the header with the signature of a change, and of its answer.
	proofHeader = "X-Linklab-Proof"
	// answerTime is the longest time for an answer of the lab.
	answerTime = 10 * time.Second
	// mostBytes is the most bytes read of an answer.
	mostBytes = 1 << 24
)

// A control reads and changes a lab over HTTP. It never sends the token: others may listen at the address
// of a lab that has ended. It signs a change, and the lab signs its answer.
type control struct {
	url, token string
	client     *http.Client
}

func newControl() *control {
	return &control{
		token: rand.Text(),
		// The lab is on this machine, so no proxy of the environment leads to it.
		client: &http.Client{Timeout: answerTime, Transport: &http.Transport{DisableKeepAlives: true}},
	}
}

// isRunning tells whether the links have their first state, and the proxies answer.
func (c *control) isRunning() bool {
	var lab struct{ State string }
	return c.read("/lab", &lab) == nil && lab.State == "running"
}

// carried returns the bytes that a link has carried until now. The lab waits for a sample.
func (c *control) carried(link string) (Carried, error) {
	var status struct {
		Now struct {
			Links map[string]struct{ Bytes struct{ Down, Up int64 } }
		}
	}
	if err := c.read("/status?sampled", &status); err != nil {
		return Carried{}, fmt.Errorf("the lab's status: %w", err)
	}
	found := status.Now.Links[link].Bytes
	return Carried{Bytes: found.Down, SentBytes: found.Up}, nil
}

// change changes a link. The lab answers when it has applied the change. Its errors have the texts
// of `linklab link`.
func (c *control) change(link string, change Change) error {
	_, err := c.patch("/lab/links/"+url.PathEscape(link), change)
	return err
}

// restore sets the lab back to the scenario's start. It returns what stays as it is.
func (c *control) restore() ([]string, error) {
	text, err := c.patch("/lab", Change{"restore": true})
	if err != nil {
		return nil, err
	}
	var done struct{ Stays []string }
	return done.Stays, json.Unmarshal(text, &done)
}

// patch sends a change to a path, and returns the lab's answer.
func (c *control) patch(path string, change Change) ([]byte, error) {
	content, err := json.Marshal(change)
	if err != nil {
		return nil, err
	}
	var given struct{ Challenge string }
	if err := c.read("/challenge", &given); err != nil {
		return nil, fmt.Errorf("no live lab answers: %w", err)
	}
	request, err := http.NewRequest(http.MethodPatch, c.url+path, bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	request.Header.Set(proofHeader, given.Challenge+":"+c.signature(http.MethodPatch+" "+path, given.Challenge, content))
	answer, err := c.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("no live lab answers: %w", err)
	}
	defer answer.Body.Close()
	var said struct{ Error, Field, Allowed string }
	text, err := io.ReadAll(io.LimitReader(answer.Body, mostBytes))
	if err == nil {
		err = json.Unmarshal(text, &said)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("no live lab answers: %w", err)
	case answer.StatusCode != http.StatusOK:
		return nil, errors.New(sentence(said.Field, said.Error, said.Allowed))
	case !hmac.Equal([]byte(answer.Header.Get(proofHeader)), []byte(c.signature("answer", given.Challenge, text))):
		return nil, errors.New("what answers is not the lab: the lab has ended")
	}
	return text, nil
}

// sentence returns a refusal as linklab says it.
func sentence(field, wrong, allowed string) string {
	if field != "" {
		wrong = field + ": " + wrong
	}
	if allowed != "" {
		wrong += "; allowed: " + allowed
	}
	return wrong
}

// signature signs a body that is sent by a method to a path, or an "answer" (realtime/proof.py).
func (c *control) signature(about, challenge string, body []byte) string {
	sum := hmac.New(sha256.New, []byte(c.token))
	fmt.Fprintf(sum, "%s\n%s\n%s", about, challenge, body)
	return hex.EncodeToString(sum.Sum(nil))
}

// read reads what the lab answers to a GET.
func (c *control) read(path string, into any) error {
	answer, err := c.client.Get(c.url + path)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	return json.NewDecoder(io.LimitReader(answer.Body, mostBytes)).Decode(into)
}
