// Command bench measures the shapes of work whose cost Switchyard promises. It runs a chain and a fan-out alternately
// with a hand-written Temporal workflow for the same shell commands, on the same embedded server in the same process,
// so that the ratio holds on a shared machine; the absolute figures are for the record only.
//
//	go run ./dev/bench [-rounds 3] [-store memory|file] [SHAPE[:PART]...]
//
// The shapes are chain, fan-out, batch, logs, placement, sessions, agents, notifications, files and k8s. PART selects the rows whose
// name contains it, as in sessions:forward. Without a shape, all but k8s are measured: k8s needs a built Kubernetes
// (go run ./dev/kubetest/build).
package main
