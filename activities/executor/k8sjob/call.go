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
	// callTimeout bounds one call of an API server.
	callTimeout = 20 * time.Second
	// Pause between two tries of a call, doubling.
	firstCallPause, lastCallPause = 200 * time.Millisecond, 5 * time.Second
	// quietAway is how long an API server is away before people are told.
	quietAway = 3 * time.Second
)

// try makes a call of the API server again and again while it is away. It returns the cause of ctx when that ends, or what the API
// server refuses.
func (a *attempt) try(ctx context.Context, call func(context.Context) error) error {
	since, told := time.Now(), false
	for pause := firstCallPause; ; pause = min(2*pause, lastCallPause) {
		bounded, cancel := context.WithTimeout(ctx, callTimeout)
		err := call(bounded)
		cancel()
		if err == nil || !jobwatch.IsAway(err) {
			if told {
				a.waits("")
			}
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if time.Since(since) > quietAway {
			told = true
			a.waits(fmt.Sprintf("cluster %s does not answer: %v", a.cluster.Name, err))
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// isUnsent reports whether a call has not reached the API server.
func isUnsent(err error) bool {
	network, ok := errors.AsType[*net.OpError](err)
	return ok && network.Op == "dial"
}

// isUnauthorized reports whether the API server does not accept the credentials of the node.
func isUnauthorized(err error) bool { return apierrors.IsUnauthorized(err) }

// refused says what it means for an attempt that the API server refuses to make something of it.
func (a *attempt) refused(err error) (executor.Result, error) {
	switch {
	case isUnauthorized(err):
		a.e.o.Clusters.Check(a.cluster.Name)
		return executor.Result{Stopped: true, ExitCode: -1, Released: fmt.Sprintf("cluster %s does not accept the credentials of node %s", a.cluster.Name, a.Identity.Node)}, nil
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return a.failed(v1.ReasonDeleted, fmt.Errorf("namespace %s of cluster %s is being deleted", a.namespace, a.cluster.Name)), nil
	case apierrors.IsNotFound(err):
		return executor.Result{}, badSpec("cluster %s has no namespace %s", a.cluster.Name, a.namespace)
	case apierrors.IsForbidden(err):
		return executor.Result{}, badSpec("cluster %s refuses it: %w; the credentials of the node need leave to create jobs and secrets, and the quota of the namespace room for them", a.cluster.Name, err)
	}
	return executor.Result{}, badSpec("cluster %s refuses it: %w", a.cluster.Name, err)
}

func (a *attempt) failed(reason string, err error) executor.Result {
	return executor.Result{ExitCode: -1, Failure: &executor.Failure{Reason: reason, Err: err}}
}
