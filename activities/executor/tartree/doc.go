// Package tartree packs trees of files to archives of tar, and unpacks these. It refuses what would lie outside of the directory in
// which an archive is unpacked. Where the files are is a matter of its callers: those of a process, or of a machine that is reached
// over a network.
//
// The package imports the standard library alone.
package tartree
