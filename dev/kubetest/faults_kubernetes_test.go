//go:build kubernetes

package kubetest

import (
	"context"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestClusterSurvivesFaultsOfItsAPIServer(t *testing.T) {
	c := Start(t, Options{})
	namespace := c.NewNamespace(t)
	isServed := func(limit time.Duration) bool {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		_, err := c.Client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		return err == nil
	}
	c.PauseAPI(t)
	if isServed(time.Second) {
		t.Error("a paused API server answers")
	}
	c.ResumeAPI(t)
	eventually(t, "the API server answers", func() bool { return isServed(20 * time.Second) })
	c.StopAPI(t)
	if isServed(waitLimit) {
		t.Error("a killed API server answers")
	}
	c.StartAPI(t)
	eventually(t, "the API server has what it had before", func() bool { return isServed(20 * time.Second) })
	// The cluster's first node joins after the faults.
	c.FakeNodes(t, 1)
	if end, reason := c.awaitEnd(t, c.newJob(t, namespace, "", nil)); end != batchv1.JobComplete {
		t.Errorf("the Job is %s (%s)", end, reason)
	}
}

func TestUnknownCommandIsAnError(t *testing.T) {
	c := Shared(t)
	for _, command := range []string{"pause nothing", "start kube-apiserver", "fake-nodes 0", "dance"} {
		if err := c.process.execute(command); err == nil {
			t.Errorf("command %q is executed", command)
		}
	}
}
