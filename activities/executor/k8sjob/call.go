package k8sjob

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"switchyard/activities/executor"
	"switchyard/activities/executor/k8sjob/jobwatch"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// callTimeout bounds one call to an API server.
	callTimeout = 20 * time.Second
	// firstCallPause and lastCallPause bound the delay between two attempts of a call, which doubles.
	firstCallPause, lastCallPause = 200 * time.Millisecond, 5 * time.Second
	// quietAway is how long an API server may be unavailable before the user is notified.
	quietAway = 3 * time.Second
)

// retryWhileAway repeats a call to the API server while the server is unavailable. It returns the cause of ctx when ctx ends, or
// the error with which the server refuses the call.
func (a *attempt) retryWhileAway(ctx context.Context, call func(context.Context) error) error {
	since, told := time.Now(), false
	for pause := firstCallPause; ; pause = min(2*pause, lastCallPause) {
		bounded, cancel := context.WithTimeout(ctx, callTimeout)
		err := call(bounded)
		cancel()
		if err == nil || !jobwatch.IsAway(err) {
			if told {
				a.reportWaiting("")
			}
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if time.Since(since) > quietAway {
			told = true
			a.reportWaiting(fmt.Sprintf("cluster %s does not answer: %v", a.cluster.Name, err))
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// isUnsent reports whether a call did not reach the API server.
func isUnsent(err error) bool {
	network, ok := errors.AsType[*net.OpError](err)
	return ok && network.Op == "dial"
}

// isUnauthorized reports whether the API server rejected the credentials of the node.
func isUnauthorized(err error) bool { return apierrors.IsUnauthorized(err) }

// refusalResult returns the result of an attempt whose objects the API server refuses to create.
func (a *attempt) refusalResult(err error) (executor.Result, error) {
	switch {
	case isUnauthorized(err):
		a.e.o.Clusters.Check(a.cluster.Name)
		return executor.Result{Stopped: true, ExitCode: -1, Released: fmt.Sprintf("cluster %s does not accept the credentials of node %s", a.cluster.Name, a.Identity.Node)}, nil
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return a.failed(v1.ReasonDeleted, fmt.Errorf("namespace %s of cluster %s is being deleted", a.namespace, a.cluster.Name)), nil
	case apierrors.IsNotFound(err):
		return executor.Result{}, badSpec("cluster %s has no namespace %s", a.cluster.Name, a.namespace)
	case apierrors.IsForbidden(err):
		return executor.Result{}, badSpec("cluster %s refused to create the Job: %w; the node's credentials need permission to create jobs and secrets, and the namespace needs free quota", a.cluster.Name, err)
	}
	return executor.Result{}, badSpec("cluster %s refused to create the Job: %w", a.cluster.Name, err)
}

func (a *attempt) failed(reason string, err error) executor.Result {
	return executor.Result{ExitCode: -1, Failure: &executor.Failure{Reason: reason, Err: err}}
}
