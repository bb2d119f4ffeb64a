// Package temporaltest gives tests a Temporal server in a process of its own. A test binary that starts its server so
// neither links it nor, under the race detector, runs it many times slower, and goroutines of the server hide none that
// leak in the test. Only tests import it, and it imports nothing of the server.
package temporaltest
