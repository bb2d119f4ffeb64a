package phrase

import "strings"

const lockWait = "waits for the lock "

// LockWait returns the wait reason of a task whose lock is held by others.
func LockWait(lock string, holders []string) string {
	return lockWait + lock + ", held by " + strings.Join(holders, ", ")
}

// IsLockWait reports whether a text was returned by LockWait.
func IsLockWait(text string) bool { return strings.HasPrefix(text, lockWait) }

// StoreWait is the notice of an attempt that has ended while its node cannot reach the store.
const StoreWait = "has ended; its result waits for the store"
