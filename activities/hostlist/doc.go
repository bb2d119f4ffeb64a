// Package hostlist decides which hosts this machine may connect to on behalf of others. Addresses that lead into its own network must
// be allowed one by one.
//
// It imports the standard library only.
package hostlist
