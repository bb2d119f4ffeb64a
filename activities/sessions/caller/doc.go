// Package caller enters attempts that run elsewhere: it is an executor.Inside over the streams of package wire, for the
// command line, the SSH door of a gateway, and gateways among themselves.
//
// It imports proto, activities/executor and activities/sessions/wire.
package caller
