package container

import (
	"slices"
	"strings"
	"syscall"
)

// signals are the names of Linux's signals from 1 on. Containers use these numbers
// whatever system their worker runs on.
var signals = strings.Fields(`HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD
	CONT STOP TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS`)

// signalOf returns the name of the signal that an exit code stands for, or "" if it
// stands for none.
func signalOf(code int) string {
	if n := code - 128; n > 0 && n <= len(signals) {
		return "SIG" + signals[n-1]
	}
	return ""
}

// numberOf returns the signal with a name such as "SIGINT", or SIGTERM for a name that only the engine knows.
func numberOf(name string) syscall.Signal {
	if name == "SIGRTMIN+3" {
		return 37 // systemd shuts down on it
	}
	if i := slices.Index(signals, strings.TrimPrefix(name, "SIG")); i >= 0 {
		return syscall.Signal(i + 1)
	}
	return syscall.SIGTERM
}

func nameOf(s syscall.Signal) string { return signalOf(128 + int(s)) }
