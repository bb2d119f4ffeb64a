package podlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	// errInterrupted reports that the copier itself ended a stream, and nothing is wrong.
	errInterrupted = errors.New("the stream was ended")
	errStalled     = fmt.Errorf("%w: nothing has come for a while", errInterrupted)
	errEnded       = fmt.Errorf("%w: the container has ended", errInterrupted)
	// errPodGone reports that the pod does not exist.
	errPodGone = errors.New("the pod is gone")
)

// interrupted returns why the copier ended a stream, or err if it did not.
func interrupted(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, errInterrupted) {
		return cause
	}
	return err
}

// open opens a stream of the log that begins at or before the position.
func (f *follower) open(ctx context.Context, follow bool) (io.ReadCloser, error) {
	options := &corev1.PodLogOptions{Container: f.pod.Container, Follow: follow, Timestamps: true}
	if f.copier.at.lines > 0 {
		since := metav1.NewTime(f.copier.at.since())
		options.SinceTime = &since
	}
	stream, err := f.client.CoreV1().Pods(f.pod.Namespace).GetLogs(f.pod.Name, options).Stream(ctx)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("read the log of pod %s: %w", f.pod.Name, err)
	}
	// Logs are read by pod name. If the UID matches now, it also matched when the stream began.
	if gone := f.checkPod(ctx); gone != nil {
		if err == nil {
			_ = stream.Close() // the stream belongs to another pod
		}
		return nil, gone
	}
	if err != nil {
		return nil, fmt.Errorf("read the log of pod %s: %w", f.pod.Name, err)
	}
	return stream, nil
}

// checkPod returns errPodGone if the pod no longer exists.
func (f *follower) checkPod(ctx context.Context) error {
	if f.pod.UID == "" {
		return nil
	}
	found, err := f.client.CoreV1().Pods(f.pod.Namespace).Get(ctx, f.pod.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return errPodGone
	case err != nil:
		return fmt.Errorf("read pod %s: %w", f.pod.Name, err)
	case found.UID != f.pod.UID:
		return fmt.Errorf("%w: another pod has its name", errPodGone)
	}
	return nil
}

// isRefusal reports whether a node refuses because it has no log of the container.
func isRefusal(err error) bool { return apierrors.IsBadRequest(err) || apierrors.IsNotFound(err) }

// hasNeverStarted reports whether a node has no log of a container because it never ran.
func hasNeverStarted(err error) bool {
	text := err.Error()
	for _, why := range []string{"is waiting to start", "is not available", "is terminated", "has not been assigned", "does not have a host assigned"} {
		if strings.Contains(text, why) {
			return true
		}
	}
	return false
}
