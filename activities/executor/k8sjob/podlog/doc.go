// Package podlog copies the log of a Kubernetes container while it is written, from a position that an earlier copy has
// reached. It neither duplicates nor loses lines, whatever happens to the connection.
//
// An API server returns a log from a given time on, in whole seconds only, and prefixes each line with its timestamp:
//
//	2026-11-26T05:17:09.669794202Z compiling
//
// The timestamp alone does not identify a line: several lines may share it, and merging stdout and stderr, or setting a
// clock back, puts lines out of order. A line is identified by the latest timestamp up to it and the number of lines
// since the first one with that timestamp. Reading the log again finds it, in whatever order the timestamps are. The
// log is read again from the earliest timestamp of these lines on.
//
//	           time of position            line of position           next line
//	skipping ───────────────────> counting ────────────────> skipping ──────────> copying
//	    └─────────────────── a later time: the line has been rotated away ───────────^
//
// Text without a timestamp, such as a message of the kubelet in place of the log, belongs to the line before it.
//
// The package imports the official client of Kubernetes and the standard library.
package podlog
