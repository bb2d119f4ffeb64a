// Command bench measures Switchyard against a Temporal workflow that an engineer
// wrote by hand for the same shell commands. Both run on the same embedded
// server in the same process, in turns, so that the ratio holds although the
// machine is shared; the absolute figures are for the record only.
//
//	go run ./dev/bench [-rounds 3] [-store memory|file|both] [-shape NAME]
//
// With -shape layout it measures the layout and the drawing of large graphs.
// With -shape placement it measures the placement queue alone, on fleets of
// 1,000 and of 10,000 nodes that are made up, and with -shape container, or
// container:PART-OF-A-NAME, it measures container tasks against docker run.
// With -shape gateway it measures the doors of a gateway against one another, what the audit takes of a submit, what
// tokens and the tools of agents cost, and what those who follow the events of a busy run, or look at its page, cost; gateway:audit,
// gateway:tokens, gateway:agents, gateway:followers and gateway:viewers measure only these.
// With -shape k8s it measures Jobs of Kubernetes, on a cluster with fake nodes, against a minimal client and kubectl;
// k8s:jobs, k8s:waiting and k8s:one measure only these.
// With -shape sessions it measures sessions on tasks against socat and docker exec, and what many of them do to a gateway;
// sessions:forward, sessions:exec, sessions:idle and sessions:logins measure only these.
// With -shape limits, or limits:PART-OF-A-NAME, it runs definitions that want more
// at once than Temporal lets a workflow have, and cancels each in the middle.
package main
