// Package temporaltest starts Temporal servers for tests in a process of their own. So the test binary does not link the
// server, the race detector does not slow it down, and the server's goroutines do not hide goroutine leaks of the test.
// Only tests import it, and it links nothing of the server.
package temporaltest
