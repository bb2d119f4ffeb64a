// Package output writes what commands print on standard output: tables and texts
// for people, JSON, runs and logs as documents, and graphs in the languages of
// other tools. Its flag -o chooses among them.
//
// It may import proto, cli/exit, drawing/graph, drawing/words and workflows/nearest.
package output
