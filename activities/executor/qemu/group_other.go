//go:build !linux

package qemu

import (
	"syscall"

	"switchyard/activities/executor"
)

// group is the cgroup of a machine's processes. This system has no cgroups.
type group struct{}

func newGroup(string, executor.Limits) *group { return nil }

func (*group) attributes() *syscall.SysProcAttr { return nil }

func (*group) close() {}

func (*group) directory() string { return "" }

func clearGroup(string) error { return nil }

func hasRunOutOfMemory(string) bool { return false }
