// Package cli is the command line of Switchyard, one file per command. Every
// command about runs or nodes is a client of the gateway; `run` and `dev` first
// start a gateway in this process (package stack).
//
//	Main ──> execute ──> cobra ──> a command ──> client ──> follow ──> tui
//	                                   ├──────> output, exit
//	                                   └──────> stack: Temporal, store, control, nodes, gateway
//
// Data goes to standard output; progress, logs and errors go to standard error.
// A setting comes from its flag, else from the environment, else from the
// configuration file, else from its default (package config). The exit code follows
// from the error that a command returns (package exit).
//
// It may import everything; nothing but main and the tools of dev that document the commands imports it.
package cli
