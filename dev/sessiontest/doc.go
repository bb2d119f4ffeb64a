// Package sessiontest lets tests of sessions use this machine as the inside of an attempt, with real programs, terminals,
// ports and files. Only tests import it.
//
// Of this module it may import activities/executor and dev/testneeds.
package sessiontest
