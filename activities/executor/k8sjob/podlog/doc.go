// Package podlog copies the log of a container of Kubernetes while it is written, without doubled or lost lines, whatever
// becomes of the connection, and from a position that an earlier copy has reached.
//
// An API server gives a log from a time on, whole seconds only, a line each with its time:
//
//	2026-11-26T05:17:09.669794202Z compiling
//
// The time of a line alone does not identify it: lines may have the same one, and those of stdout and stderr, or a clock that
// is set back, get them out of order. A line is identified by the latest time up to it and how many lines there are since the
// first one with that time, which reading the log again finds in whatever order the times are. The log is read again from
// the earliest time of these lines on.
//
//	           time of position            line of position           next line
//	skipping ───────────────────> counting ────────────────> skipping ──────────> copying
//	    └─────────────────── a later time: the line has been rotated away ───────────^
//
// What has no time, such as a text of the kubelet in place of the log, belongs to the line before it.
//
// The package imports the official client of Kubernetes and the standard library.
package podlog
