// Package streamjson reads the stream of JSON lines that claude-code, and programs that speak like it, print: it parses lines,
// bounds them, and sums up what an agent has said, called and used. It does no I/O. It may import proto and
// activities/executor.
package streamjson
