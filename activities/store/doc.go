// Package store keeps what is too large or lives too long for Temporal's
// history: result records, statuses of ended runs, their events, state carried
// from one execution of a run to the next, the chunks of logs, and archives of environments. A store is a
// folder, a blob bucket or a gateway, named by a URL; package storekey lays out its keys.
//
//	Store ── folder ─┬ journal  what must be the first of its key, appended to one file a run
//	                 └ files    everything else, and what is large; over a network, all of it by link(2)
//	      ── bucket             S3, GCS, memory
//	      ── remote             a gateway's BlobService, which has one of the above
//	      ── spooler ─┬ spool   any of them for a node, with a spool on its disk
//	                  └ ...     while the store is away
//
// A store that is away gives errors, and never ErrNotFound: a folder has a marker by which
// it differs from the empty one in its place while its file system is gone. Probe reports whether
// an error concerns one value or the store.
//
// The package may import proto, activities/filelock, activities/gatewayclient and libraries; it knows no
// Temporal and nothing of what its values mean.
package store
