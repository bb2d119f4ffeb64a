// Package limits has the limits that keep a run, and what it sends, clear of those of Temporal. It is pure, and imports
// nothing of this module.
package limits
