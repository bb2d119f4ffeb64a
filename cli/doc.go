// Package cli is the command line of Switchyard, one file a command. Every
// command that has to do with runs or nodes is a client of the gateway; `run` and
// `dev` start one in this process first (stack.go).
//
//	Main ──> execute ──> cobra ──> a command ──> gateway client ──> follower ──> tui
//	                                   └───────> stack: Temporal, store, control, nodes, gateway
//
// Data goes to standard output; progress, logs and errors go to standard error.
// A setting comes from its flag, else from the environment (env.go), else from
// the configuration file (configfile.go), else from its default; settings.go puts
// them together. The exit code follows from the error that a command returns, in
// one place (exit.go).
//
// It may import everything; nothing but main imports it.
package cli
