//go:build !unix

package terminal

import "os"

// onFatalSignal does nothing: this system has no such signals.
func onFatalSignal(func()) (release func()) { return func() {} }

// onResize does nothing: this system has no such signal.
func onResize(chan<- os.Signal) (release func()) { return func() {} }
