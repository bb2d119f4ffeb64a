//go:build !unix

package terminal

import "os"

// onFatalSignal is a no-op: this system has no such signals.
func onFatalSignal(func()) (release func()) { return func() {} }

// onResize is a no-op: this system has no such signal.
func onResize(chan<- os.Signal) (release func()) { return func() {} }
