// Package limits holds the limits that keep a run, and the messages that it sends, within the limits of Temporal. It is pure,
// and imports nothing of this module.
package limits
