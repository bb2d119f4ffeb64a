// Package phrase formats the texts that people read in events, in reasons and in lists. It imports nothing of this module.
package phrase
