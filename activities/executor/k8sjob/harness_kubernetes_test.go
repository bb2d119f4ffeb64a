//go:build kubernetes

package k8sjob

import (
	"net/http"
	"os"
	"testing"

	"switchyard/activities/executor/k8sjob/cluster"
	"switchyard/dev/kubetest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	kubetest.StopShared()
	os.Exit(code)
}

// newBench returns a bench of a cluster of dev/kubernetes.
func newBench(t *testing.T, c *kubetest.Cluster, o Options) *bench {
	t.Helper()
	return (&bench{T: t, client: c.Client, namespace: c.NewNamespace(t), open: opener(t, c.Kubeconfig, nil)}).another(o)
}

// opener returns a function that opens the cluster of a kubeconfig until the end of the test. wrap wraps its transport, and may be nil.
func opener(t *testing.T, kubeconfig string, wrap func(http.RoundTripper) http.RoundTripper) func() Clusters {
	return func() Clusters {
		t.Helper()
		clusters, err := cluster.Open([]cluster.Config{{Name: "test", File: kubeconfig}}, cluster.Options{WrapTransport: wrap})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = clusters.Close() })
		return clusters
	}
}
