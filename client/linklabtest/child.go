package linklabtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// endTime is how long a lab may take to end.
const endTime = 30 * time.Second

// A child is a lab's process.
type child struct {
	process *os.Process
	said    *os.File
	told    chan addresses
	ended   chan struct{}
}

// addresses are what a lab says of itself. It listens on them as long as it lives, and nobody else
// can take them.
type addresses struct {
	Address string
	Proxies map[string]string
	Origins []string
}

// addressesFD is the descriptor to which the lab writes them, the first of Cmd.ExtraFiles.
const addressesFD = 3

// startChild starts a program with a further variable in its environment. The program also ends with
// this process, however that ends.
func startChild(program string, words []string, variable string) (*child, error) {
	said, err := os.CreateTemp("", "linklabtest-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(said.Name()); err != nil {
		return nil, errors.Join(err, said.Close())
	}
	command := exec.Command(program, words...)
	command.Env = append(os.Environ(), variable)
	command.Stderr = said
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, said.Close())
	}
	command.ExtraFiles = []*os.File{writer}
	command.SysProcAttr = endsWithParent()
	started, ended := make(chan error), make(chan struct{})
	go func() {
		// The kernel ends the program with the thread that started it (golang/go#27505).
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(ended)
		err := command.Start()
		started <- err
		if err == nil {
			_ = command.Wait() // Its last words tell what was wrong.
		}
	}()
	err = errors.Join(<-started, writer.Close())
	if err != nil {
		return nil, errors.Join(err, reader.Close(), said.Close())
	}
	told := make(chan addresses, 1)
	go func() {
		defer reader.Close()
		var read addresses
		if json.NewDecoder(reader).Decode(&read) == nil && read.Proxies[""] != "" {
			told <- read
		}
	}()
	return &child{command.Process, said, told, ended}, nil
}

// await waits until a lab lacks nothing. It fails if the lab ends, or says nothing new for a time.
func (c *child) await(lacks func() string, limit time.Duration) error {
	length, since := int64(0), time.Now()
	for {
		missing := lacks()
		wait := between
		if missing == "" {
			wait = 0
		}
		select {
		case <-c.ended: // Also after the last look: others may have answered in place of the lab.
			return fmt.Errorf("the lab did not start: %s", c.lastLine())
		case <-time.After(wait):
		}
		if missing == "" {
			return nil
		}
		if info, err := c.said.Stat(); err == nil && info.Size() != length {
			length, since = info.Size(), time.Now()
		}
		if time.Since(since) > limit {
			return fmt.Errorf("the lab did not start within %v (%s): %s", limit, missing, c.lastLine())
		}
	}
}

// end ends the lab as Ctrl-C does.
func (c *child) end() {
	_ = c.process.Signal(os.Interrupt) // It may have ended by itself.
	select {
	case <-c.ended:
	case <-time.After(endTime):
		_ = c.process.Kill()
		<-c.ended
	}
	_ = c.said.Close()
}

// lastLine returns the last line of what the lab said.
func (c *child) lastLine() string {
	content, err := io.ReadAll(io.NewSectionReader(c.said, 0, mostBytes))
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	if last := lines[len(lines)-1]; err == nil && last != "" {
		return strings.TrimPrefix(last, "linklab: ")
	}
	return "it said nothing"
}
