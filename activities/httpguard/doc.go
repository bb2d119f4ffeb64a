// Package httpguard keeps the pages of other web sites away from the HTTP servers
// of a machine, which have no other protection while they listen on loopback.
//
// It imports nothing of Switchyard, and everything may import it.
package httpguard
