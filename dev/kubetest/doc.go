// Package kubetest starts clusters of a real Kubernetes for tests: etcd, API server, controllers and scheduler of
// dev/kubernetes as processes beside the test. A cluster has fake nodes, whose pods run nothing and end according to
// their annotations, or this machine as a real node, whose pods are containers.
//
//	cluster := kubetest.Start(t, kubetest.Options{FakeNodes: 1})
//	namespace := cluster.NewNamespace(t)
//
// Tests that can share one cluster per process call [Shared] instead. Without a build of dev/kubernetes such tests skip;
// see [Program]. Only tests import it, and benchmarks, which call [Open].
package kubetest
