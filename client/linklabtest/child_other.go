//go:build !linux

package linklabtest

import "syscall"

// endsWithParent does nothing: only Linux has labs.
func endsWithParent() *syscall.SysProcAttr { return nil }
