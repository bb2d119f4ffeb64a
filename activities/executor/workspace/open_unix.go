//go:build unix

package workspace

import "syscall"

// openFlags makes open refuse a symbolic link and not wait for the writer of a pipe.
const openFlags = syscall.O_NOFOLLOW | syscall.O_NONBLOCK | syscall.O_CLOEXEC
