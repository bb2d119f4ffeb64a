// Package caller enters attempts that run elsewhere. It implements executor.Inside over the streams of package wire,
// for the command line, the SSH door of a gateway, and calls between gateways.
//
// It imports proto, activities/executor and activities/sessions/wire.
package caller
