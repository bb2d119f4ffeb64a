package k8sjob

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"switchyard/activities/executor"
)

// Pause suspends a Job whose pod is not on a node yet. Once the pod is on a node, Pause refuses: Kubernetes would
// delete the pod, and its program would restart from the beginning.
func (e *Executor) Pause(ctx context.Context, id string) error {
	a := e.find(id)
	if a == nil {
		return executor.ErrNotRunning
	}
	for _, pod := range a.follower.Get().Pods {
		if pod.Spec.NodeName != "" {
			return &executor.Refusal{Text: fmt.Sprintf("pod %s is already on node %s of the cluster; only a Job whose pod has not started can be suspended", pod.Name, pod.Spec.NodeName)}
		}
	}
	return a.suspend(ctx, true)
}

// Resume lets a suspended Job start.
func (e *Executor) Resume(ctx context.Context, id string) error {
	a := e.find(id)
	if a == nil {
		return executor.ErrNotRunning
	}
	return a.suspend(ctx, false)
}

func (a *attempt) suspend(ctx context.Context, suspended bool) error {
	a.mu.Lock()
	ending, uid := a.ending, a.uid
	a.mu.Unlock()
	if s := a.follower.Get(); ending || s.Job == nil || s.Job.UID != uid {
		return executor.ErrNotRunning
	}
	patch := fmt.Appendf(nil, `{"spec":{"suspend":%t}}`, suspended)
	_, err := a.cluster.Client.BatchV1().Jobs(a.namespace).Patch(ctx, a.name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return executor.ErrNotRunning
	}
	if err != nil {
		return fmt.Errorf("suspend or resume Job %s of cluster %s: %w", a.name, a.cluster.Name, err)
	}
	return nil
}
