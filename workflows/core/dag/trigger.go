package dag

import "fmt"

// A trigger is the `when` of a task: a named condition over how its parents ended. The empty trigger means no `when`.
type trigger string

const (
	allSuccess trigger = "all_success"
	allDone    trigger = "all_done"
	allFailed  trigger = "all_failed"
	oneSuccess trigger = "one_success"
	oneFailed  trigger = "one_failed"
	noneFailed trigger = "none_failed"
	always     trigger = "always"
)

// holds reports whether the task may start, given its settled parents.
func (t trigger) holds(succeeded, neutral, failed int) bool {
	switch t {
	case allSuccess:
		return neutral == 0 && failed == 0
	case allDone, always:
		return true
	case allFailed:
		return succeeded == 0 && neutral == 0
	case oneSuccess:
		return succeeded > 0
	case oneFailed:
		return failed > 0
	case noneFailed:
		return failed == 0
	}
	return failed == 0 && succeeded > 0
}

// stubborn reports whether the trigger expects failures, so that its task starts in a run that has halted.
func (t trigger) stubborn() bool {
	return t == allDone || t == always || t == oneFailed || t == allFailed
}

// missed returns a message for people about why the trigger does not hold.
func (t trigger) missed(succeeded, neutral, failed int) string {
	return fmt.Sprintf("when: %s does not hold: of its parents %d succeeded, %d failed and %d were skipped", t, succeeded, failed, neutral)
}
