// Command kubernetes-for-tests is a Kubernetes in one process tree: etcd, the API server, the controller manager, the
// scheduler, the kubelet and kubectl are commands of one binary, built from their sources. `up` starts them as its
// children, and ends them when its standard input ends.
//
// It is a module of its own, so that Switchyard neither links nor downloads Kubernetes. Package dev/kubetest builds and
// runs it for tests. docs/development/kubernetes.md describes manual use and pitfalls.
package main
