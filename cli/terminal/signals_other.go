//go:build !unix

package terminal

import "os"

// onFatalSignal does nothing: there are no such signals.
func onFatalSignal(func()) (release func()) { return func() {} }

// onResize does nothing: there is no such signal.
func onResize(chan<- os.Signal) (release func()) { return func() {} }
