//go:build unix

package secrets

import "syscall"

const nonBlocking = syscall.O_NONBLOCK
