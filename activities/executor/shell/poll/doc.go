// Package poll waits for conditions that the kernel does not notify of. It imports nothing of this
// module.
package poll
