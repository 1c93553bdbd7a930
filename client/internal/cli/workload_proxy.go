package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// ownProxy is a multilink proxy that a workload has started.
type ownProxy struct {
	command *exec.Cmd
	address string
}

// proxyPatience is how long a proxy may take to start and to end.
const proxyPatience = 10 * time.Second

// startedProxy runs this program with words, which are "proxy" and its flags, until stop. It waits
// until the proxy listens.
func startedProxy(ctx context.Context, words []string, stderr io.Writer) (*ownProxy, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, program, append(words, "--listen", "127.0.0.1:0")...)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = proxyPatience
	command.Stderr = stderr
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdout, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	said, err := bufio.NewReader(stdout).ReadString('\n')
	address, ok := strings.CutPrefix(strings.TrimSpace(said), proxyGreeting)
	if err != nil || !ok {
		command.Process.Kill()
		return nil, fmt.Errorf("the proxy does not start: %w", command.Wait())
	}
	return &ownProxy{command, address}, nil
}

// stop ends the proxy and waits for its end.
func (p *ownProxy) stop() {
	p.command.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(proxyPatience, func() { p.command.Process.Kill() })
	defer kill.Stop()
	p.command.Wait()
}
