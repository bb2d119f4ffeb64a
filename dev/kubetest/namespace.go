package kubetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// accountLimit is how long the creation of a new namespace's service account may take.
	accountLimit = 4 * time.Minute
	// deleteLimit is how long the request to delete a namespace may take.
	deleteLimit = 10 * time.Second
	pollEvery   = 20 * time.Millisecond
)

// NewNamespace creates a namespace with a unique name in which pods can be created. It is deleted with its contents
// after the test, unless the API server is gone.
func (c *Cluster) NewNamespace(t testing.TB) string {
	t.Helper()
	name, err := c.MakeNamespace(t.Context())
	if name != "" {
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), deleteLimit)
			defer cancel()
			// The deletion continues in the cluster; no test waits for it.
			if err := c.Client.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				t.Logf("delete namespace %s: %v", name, err)
			}
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// MakeNamespace creates a namespace with a unique name. It returns the name together with an error if the namespace
// exists but no pods can be created in it yet.
func (c *Cluster) MakeNamespace(ctx context.Context) (string, error) {
	namespace, err := c.Client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	name := namespace.Name
	// No pod can be created in a namespace before its service account exists.
	ctx, cancel := context.WithTimeout(ctx, accountLimit)
	defer cancel()
	for {
		_, err := c.Client.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		if err == nil {
			return name, nil
		}
		if !apierrors.IsNotFound(err) {
			return name, fmt.Errorf("wait for the account of namespace %s: %w", name, err)
		}
		select {
		case <-ctx.Done():
			return name, fmt.Errorf("wait for the account of namespace %s: %w", name, ctx.Err())
		case <-time.After(pollEvery):
		}
	}
}
