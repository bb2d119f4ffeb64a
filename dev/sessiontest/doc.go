// Package sessiontest has an inside of an attempt for tests of what enters attempts: that of this machine, with real programs,
// terminals, ports and files. Only tests import it.
//
// Of this module it may import activities/executor and dev/testneeds.
package sessiontest
