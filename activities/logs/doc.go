// Package logs stores the output of tasks. A Writer stores the output of an attempt while the attempt prints it. Read
// returns the output, even while the attempt runs and after its node has died.
//
// The log of a dispatch is a sequence of blobs, its chunks, numbered from 0. A chunk is a sequence of records. Each is a
// v1.LogEntry, preceded by its length as a varint; task and attempt are omitted, because the key of the chunk names them.
// A record of length zero ends the log. A dispatch that printed nothing has no chunks, and one whose node died has no
// end. A chunk never changes once the next one exists, and chunk n+1 is stored after chunk n, so a follower only ever
// looks for the next number.
//
// The dispatches of an attempt that runs outside of the nodes share one log. Each dispatch resumes the log where its
// source continues. The entries of such a log record where they begin in the source (Mark), which readers do not see.
//
// Pieces of one stream are in the order in which they were printed. Between the two streams the order is that in which
// the node read them. Times are those of the node and come from package time, which tests replace with testing/synctest.
//
// The package may import proto, activities/store, activities/secrets/mask and libraries; it knows no
// Temporal.
package logs
