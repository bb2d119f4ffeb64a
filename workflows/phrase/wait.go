package phrase

import "strings"

const lockWait = "waits for the lock "

// LockWait returns why a task waits that wants a lock which others hold.
func LockWait(lock string, holders []string) string {
	return lockWait + lock + ", held by " + strings.Join(holders, ", ")
}

// IsLockWait reports whether a text is one of LockWait.
func IsLockWait(text string) bool { return strings.HasPrefix(text, lockWait) }

// StoreWait is what holds up an attempt that has ended while its node cannot reach the store.
const StoreWait = "has ended; its result waits for the store"
