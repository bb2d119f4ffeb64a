package phrase

import (
	"fmt"
	"strings"
)

const (
	lockWait = "waits for the lock "
	slotWait = "the run waits for its place"
	ending   = "is ending: "

	inFinally = "finally runs; the tasks before it have ended as "
)

// LockWait returns the wait reason of a task whose lock is held by others.
func LockWait(lock string, holders []string) string {
	return lockWait + lock + ", held by " + strings.Join(holders, ", ")
}

// LockHolders returns the holders in a text that was returned by LockWait.
func LockHolders(text string) []string {
	_, holders, _ := strings.Cut(strings.TrimPrefix(text, lockWait), ", held by ")
	return strings.Split(holders, ", ")
}

// Deadlock returns the error of a task or run that is refused a lock because it would wait for it for ever.
func Deadlock(lock string, holders []string, remedy string) string {
	return lock + " is held by " + strings.Join(holders, ", ") + " until runs that wait for it have ended, so it is never granted; " + remedy
}

// IsLockWait reports whether a text was returned by LockWait.
func IsLockWait(text string) bool { return strings.HasPrefix(text, lockWait) }

// SlotWait returns the wait reason of a run while others take all places that concurrency.maxRuns allows.
func SlotWait(maxRuns int32, holders []string) string {
	return fmt.Sprintf("%s: concurrency.maxRuns is %d, held by %s", slotWait, maxRuns, strings.Join(holders, ", "))
}

// IsSlotWait reports whether a text was returned by SlotWait.
func IsSlotWait(text string) bool { return strings.HasPrefix(text, slotWait) }

// InFinally returns the text of a run in `finally`, given how its tasks have ended.
func InFinally(state, why string) string {
	return Because(inFinally+state, why)
}

// IsInFinally reports whether a text was returned by InFinally.
func IsInFinally(text string) bool { return strings.HasPrefix(text, inFinally) }

// Ending returns the text of a run that has been told to end and waits for its tasks.
func Ending(why string) string { return ending + why }

// IsEnding reports whether a text was returned by Ending.
func IsEnding(text string) bool { return strings.HasPrefix(text, ending) }

// WorkspaceWait returns the wait reason of a task while another task uses its workspace.
func WorkspaceWait(name, task string) string {
	return "waits for task " + task + ", which uses workspace " + name
}

// ArtifactsWait is the notice of an attempt whose artifacts are being fetched or stored.
const ArtifactsWait = "transfers its artifacts"

// StoreWait is the notice of an attempt that has ended while its node cannot reach the store.
const StoreWait = "has ended; its result waits for the store"
