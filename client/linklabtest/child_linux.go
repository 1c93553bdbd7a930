package linklabtest

import "syscall"

// endsWithParent has a program end with the thread that starts it. Ctrl-C in the terminal reaches the
// test alone.
func endsWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setsid: true}
}
