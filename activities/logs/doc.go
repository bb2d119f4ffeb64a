// Package logs keeps what tasks print: a Writer stores the output of an attempt
// while it comes, and Read gives it back, also while the attempt runs and after
// its node has died.
//
// The log of a dispatch is a row of blobs, its chunks, numbered from 0. A chunk
// is a row of records, each a v1.LogEntry after its length as a varint; task
// and attempt are left out, since the key of the chunk names them. A record of
// length zero ends the log. A dispatch that printed nothing has no chunks, and
// one whose node died has no end. A chunk never changes once the next one is
// there, and chunk n+1 is stored after chunk n, so whoever follows a log only
// ever looks for the next number.
//
// The dispatches of an attempt that runs outside of the nodes share one log, which each of them resumes where its source
// continues: its entries say where they begin in the source (Mark), and readers do not see that.
//
// What came when: pieces of one stream are in the order in which they were
// printed; between the two streams the order is that in which the node read
// them. Times are those of the node, and come from package time, which tests
// replace with testing/synctest.
//
// The package may import proto, activities/store, activities/secrets/mask and libraries; it knows no
// Temporal.
package logs
