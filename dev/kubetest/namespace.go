package kubetest

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// accountLimit is how long the service account of a new namespace may take.
	accountLimit = time.Minute
	// deleteLimit is how long the request to delete a namespace may take.
	deleteLimit = 10 * time.Second
	pollEvery   = 20 * time.Millisecond
)

// NewNamespace makes a namespace of a new name in which pods can be made. It is deleted after the test, with all that is
// in it, unless the API server is gone.
func (c *Cluster) NewNamespace(t testing.TB) string {
	t.Helper()
	namespaces := c.Client.CoreV1().Namespaces()
	namespace, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	name := namespace.Name
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), deleteLimit)
		defer cancel()
		// Deletion continues in the cluster; no test waits for it.
		if err := namespaces.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Logf("delete namespace %s: %v", name, err)
		}
	})
	// Until its account exists no pod can be made in a namespace.
	ctx, cancel := context.WithTimeout(t.Context(), accountLimit)
	defer cancel()
	for {
		_, err := c.Client.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		if err == nil {
			return name
		}
		if !apierrors.IsNotFound(err) {
			t.Fatalf("wait for the account of namespace %s: %v", name, err)
		}
		select {
		case <-ctx.Done():
			t.Fatalf("namespace %s has no account after %v", name, accountLimit)
		case <-time.After(pollEvery):
		}
	}
}
