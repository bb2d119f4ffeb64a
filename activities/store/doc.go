// Package store keeps values that are too large or live too long for Temporal's history: result records, statuses of
// ended runs, their events, state that one execution of a run passes to the next, the chunks of logs, and archives of
// environments. A store is a folder, a blob bucket or a gateway, named by a URL. Package storekey defines the keys.
//
//	Store ── folder ─┬ journal  values that must be the first of their key, appended to one file per run
//	                 └ files    everything else, and large values; over a network, all values, by link(2)
//	      ── bucket             S3, GCS, memory
//	      ── remote             a gateway's BlobService, which has one of the above
//	      ── spooler ─┬ spool   any of them for a node, with a spool on its disk
//	                  └ ...     for the time that the store is away
//
// A store that is away returns errors other than ErrNotFound. A folder has a marker file, which distinguishes it from the
// empty folder in its place while its file system is not mounted. Probe reports whether an error concerns one value or
// the whole store.
//
// The package may import proto, activities/filelock, activities/gatewayclient and libraries; it knows no
// Temporal and nothing of what its values mean.
package store
