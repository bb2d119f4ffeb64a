// Command server is a Temporal server for tests: in memory, with the search attributes of runs. It prints its address
// and ends when its standard input does. Package temporaltest starts it.
package main
