// Command server runs Temporal servers in memory for tests. It starts and stops servers on requests from standard input,
// and ends when that does. Package temporaltest starts it.
package main
