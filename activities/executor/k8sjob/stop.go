package k8sjob

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"switchyard/activities/executor"
	"switchyard/activities/executor/k8sjob/podstate"
)

const (
	// stopPatience is how long to wait for a deleted pod after its grace period.
	stopPatience = 2 * time.Minute
	// stopAway bounds how long to retry the deletion of a Job while the API server is unavailable.
	stopAway = 10 * time.Minute
	// goneAgain is the interval of checking whether a Job is gone.
	goneAgain = time.Second
)

// stop deletes the Job and waits until its pod is gone. It returns r, with the exit code of the program if r has none
// and the code is known. If the deletion fails, the sweeper deletes the Job later.
func (a *attempt) stop(ctx context.Context, r executor.Result) executor.Result {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopAway)
	defer cancel()
	a.remove(ctx)
	patience := time.After(a.Grace + stopPatience)
	endGrace := a.EndGrace
	again := time.NewTicker(goneAgain)
	defer again.Stop()
	for !a.isGone(ctx) {
		if r.Stopped && r.ExitCode < 0 {
			if s := a.follower.Get(); len(s.Pods) > 0 {
				if end := podstate.EndOf(s.Pods[0], a.container, time.Now()); end != nil && end.Exited {
					r.ExitCode, r.Signal = end.Result.ExitCode, end.Result.Signal
				}
			}
		}
		select {
		case <-a.follower.News:
		case <-again.C:
		case <-endGrace:
			endGrace = nil
			a.killPods(ctx)
		case <-patience:
			a.notify(fmt.Sprintf("the pod of Job %s is still terminating; cluster %s has to finish the deletion", a.name, a.cluster.Name))
			return r
		case <-ctx.Done():
			a.notify(fmt.Sprintf("Job %s may still be running: cluster %s does not answer; a node with this cluster deletes the Job when it looks for Jobs whose runs are gone", a.name, a.cluster.Name))
			return r
		}
	}
	return r
}

// remove deletes the Job with its pods and its Secret. The Job exists until they are gone.
func (a *attempt) remove(ctx context.Context) {
	foreground := metav1.DeletePropagationForeground
	options := metav1.DeleteOptions{PropagationPolicy: &foreground}
	if a.uid != "" {
		options.Preconditions = metav1.NewUIDPreconditions(string(a.uid))
	}
	err := a.retryWhileAway(ctx, func(ctx context.Context) error {
		return a.cluster.Client.BatchV1().Jobs(a.namespace).Delete(ctx, a.name, options)
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && a.e.o.Logger != nil {
		a.e.o.Logger.Warn("a Job could not be deleted", "cluster", a.cluster.Name, "namespace", a.namespace, "job", a.name, "error", err)
	}
}

// killPods deletes the pods of the Job without a grace period.
func (a *attempt) killPods(ctx context.Context) {
	now := int64(0)
	for _, pod := range a.follower.Get().Pods {
		bounded, cancel := context.WithTimeout(ctx, callTimeout)
		err := a.cluster.Client.CoreV1().Pods(a.namespace).Delete(bounded, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now})
		cancel()
		if err != nil && !apierrors.IsNotFound(err) && a.e.o.Logger != nil {
			a.e.o.Logger.Warn("a pod could not be killed", "cluster", a.cluster.Name, "namespace", a.namespace, "pod", pod.Name, "error", err)
		}
	}
}

// isGone reports whether the watch shows no Job and no open pod, and the API server confirms it.
func (a *attempt) isGone(ctx context.Context) bool {
	s := a.follower.Get()
	if s.Job != nil && (a.uid == "" || s.Job.UID == a.uid) || s.Synced && hasOpenPod(s.Pods) {
		return false
	}
	bounded, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	job, err := a.cluster.Client.BatchV1().Jobs(a.namespace).Get(bounded, a.name, metav1.GetOptions{})
	return apierrors.IsNotFound(err) || err == nil && a.uid != "" && job.UID != a.uid
}

func hasOpenPod(pods []*corev1.Pod) bool {
	for _, pod := range pods {
		if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			return true
		}
	}
	return false
}
