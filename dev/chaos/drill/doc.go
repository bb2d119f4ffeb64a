// Package drill breaks a real deployment of Switchyard on purpose and checks
// from outside that nothing is lost, doubled or stuck. Command chaos runs its
// scenarios by hand, dev/e2e each of them once.
//
// A Cluster is one deployment: a Temporal server, gateways and workers, each a
// process of its own that may be killed, stopped or cut off by a Proxy. What
// really ran is shown by the marks that every attempt writes to a file, see
// task.sh; what Switchyard says of it is asked through its command line.
//
// A scenario is a function that returns an error which says what was seen. It
// waits for conditions, and judges times only by the marks. Everything runs on
// one machine and one clock. Linux only: /proc shows which processes are left.
package drill
