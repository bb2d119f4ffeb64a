// Package drill breaks a real deployment of Switchyard on purpose and checks
// from outside that nothing is lost, doubled or stuck. Command chaos runs its
// scenarios by hand, and dev/e2e runs each of them once.
//
// A Cluster is one deployment: a Temporal server, gateways and workers. Each is a
// process of its own that a drill can kill, stop or cut off with a Proxy. Every
// attempt writes marks to a file (see task.sh), which show what really ran. The
// drill reads Switchyard's view through the command line.
//
// A scenario is a function that returns an error with its observations. It waits
// for conditions, and takes times only from the marks. Everything runs on one
// machine and one clock. Linux only: /proc shows which processes are left.
package drill
