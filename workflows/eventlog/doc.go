// Package eventlog holds the events of a run that are not stored yet, with their data. It is pure: it imports proto, and
// nothing of Temporal.
package eventlog
