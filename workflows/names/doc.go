// Package names holds the names that the parts of Switchyard must agree on:
// workflow and activity types, task queues, signals, queries and ids, each with
// its inverse where it is parsed. It is the one package, besides the pure ones,
// that both workflows and activities import. It imports nothing of Switchyard.
package names
