// Package tartree packs trees of files into tar archives and unpacks them. It refuses entries that would lie outside the
// directory into which an archive is unpacked. Callers supply access to the files, which may be local or on a machine reached
// over a network.
//
// The package imports only the standard library.
package tartree
