package doctor

import (
	"fmt"

	v1 "switchyard/proto/switchyard/v1"
)

// Result is the result of a check.
type Result string

// The results of checks.
const (
	OK Result = "ok"
	// Warning means that the role works, with less than it could have or not for much longer.
	Warning Result = "warning"
	// Failed means that the role does not work as it is set up.
	Failed Result = v1.TaskFailed
	// Skipped means that there is nothing to check.
	Skipped Result = v1.TaskSkipped
)

// Finding is what a check has found.
type Finding struct {
	// Role is the role that needs what was checked, or RoleMachine.
	Role string `json:"role"`
	// Check is the name of the check.
	Check  string `json:"check"`
	Result Result `json:"result"`
	// Detail is what was found, in one line.
	Detail string `json:"detail"`
	// Remedy says what to do, or is "" if there is nothing to do.
	Remedy string `json:"remedy,omitempty"`
}

func ok(format string, args ...any) Finding {
	return Finding{Result: OK, Detail: fmt.Sprintf(format, args...)}
}

func skipped(format string, args ...any) Finding {
	return Finding{Result: Skipped, Detail: fmt.Sprintf(format, args...)}
}

func warning(remedy, format string, args ...any) Finding {
	return Finding{Result: Warning, Detail: fmt.Sprintf(format, args...), Remedy: remedy}
}

func failed(remedy, format string, args ...any) Finding {
	return Finding{Result: Failed, Detail: fmt.Sprintf(format, args...), Remedy: remedy}
}
