// Command kubernetes-for-tests is a Kubernetes of one process tree: etcd, the API server, the controller manager, the
// scheduler, the kubelet and kubectl as commands of one binary, which it builds from their sources. `up` starts them as
// its children, and ends them when its standard input ends.
//
// It is a module of its own, so that Switchyard neither links nor downloads Kubernetes. Package dev/kubetest builds and
// runs it for tests. README.md says how to use it by hand, and what to look out for.
package main
