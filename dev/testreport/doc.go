// Command testreport reads the events of `go test -json` from files and prints what a summary leaves out: the tests that
// failed first and passed when they ran again, as FLAKY with the output of the failure, and the slowest tests.
package main
