// Package temporaltest gives tests Temporal servers in a process of their own. A test binary that starts its servers so
// neither links them nor, under the race detector, runs them many times slower, and goroutines of a server hide none
// that leak in the test. Only tests import it, and it links nothing of the server.
package temporaltest
