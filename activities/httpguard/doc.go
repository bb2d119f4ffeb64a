// Package httpguard protects the HTTP servers of a machine from the pages of other web sites.
// Servers that listen on loopback have no other protection.
//
// It imports nothing of Switchyard, and everything may import it.
package httpguard
