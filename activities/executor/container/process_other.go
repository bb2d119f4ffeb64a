//go:build !linux

package container

import (
	"syscall"
	"time"
)

// On other systems the engine runs containers in a virtual machine.

func findProcess(int, string) process { return process{} }

func killContainer(string) error { return errNotHere }

func (p process) alive() bool { return false }

func (p process) environ() ([]byte, error) { return nil, errNotHere }

func (p process) signal(syscall.Signal) error { return errNotHere }

func (p process) awaitEnd(time.Duration) bool { return true }

func (p process) signalGroup(syscall.Signal) error { return errNotHere }
