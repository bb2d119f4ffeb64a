// Package archive packs files of this machine into a tar archive, and unpacks archives from tasks. It does not trust those:
// no entry is written outside the target folder, and no file gets its final name before it is complete.
//
//	Pack:   folder ──> tar ──> task
//	Unpack: task ──> tar ──> temporary file ── complete ──> final name
//
// It imports the standard library, and nothing of this module.
package archive
