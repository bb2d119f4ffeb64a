//go:build !linux

package podhelper

import (
	"fmt"
	"runtime"
)

// Run always fails on this system, because containers of pods run Linux.
func Run([]string) int {
	return complain(ExitHelper, fmt.Errorf("run works on Linux only, and this is %s", runtime.GOOS))
}
