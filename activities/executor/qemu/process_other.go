//go:build !linux

package qemu

func (folder) isRunning() bool { return false }

func (folder) kill() error { return nil }
