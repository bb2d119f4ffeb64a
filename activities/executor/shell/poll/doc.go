// Package poll waits for what the kernel gives no notice of. It imports nothing of this module.
package poll
