// Command bench compares Switchyard with hand-written Temporal workflows for the
// same shell commands. Both run alternately on the same embedded server in the
// same process, so that the ratio holds on a shared machine; the absolute figures
// are for the record only.
//
//	go run ./dev/bench [-rounds 3] [-store memory|file|both] [-shape NAME]
//
// With -shape layout it measures the layout and the drawing of large graphs.
// With -shape placement it measures only the placement queue, on synthetic fleets
// of 1,000 and of 10,000 nodes, and with -shape container, or
// container:PART-OF-A-NAME, it compares container tasks with docker run.
// With -shape gateway it compares the APIs of a gateway, and measures the cost of the audit for a submit, of tokens, of the
// tools of agents, and of clients that follow the events of a busy run or watch its page; gateway:audit, gateway:tokens,
// gateway:agents, gateway:followers and gateway:viewers measure only these.
// With -shape k8s it compares Kubernetes Jobs, on a cluster with fake nodes, with a minimal client and kubectl;
// k8s:jobs, k8s:waiting and k8s:one measure only these.
// With -shape sessions it compares sessions on tasks with socat and docker exec, and measures the load of many sessions on a
// gateway; sessions:forward, sessions:exec, sessions:idle and sessions:logins measure only these.
// With -shape limits, or limits:PART-OF-A-NAME, it runs definitions beyond what
// Temporal allows a workflow at once, and cancels each in the middle.
package main
