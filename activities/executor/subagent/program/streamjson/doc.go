// Package streamjson reads the JSON lines that claude-code and compatible programs print: it parses lines, bounds them,
// and summarizes what an agent has said, called and used. It does no I/O. It may import proto and
// activities/executor.
package streamjson
