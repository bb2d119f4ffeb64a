// Command server runs Temporal servers for tests: in memory, as many as it is asked for on its standard input, whose end
// ends it. Package temporaltest starts it.
package main
