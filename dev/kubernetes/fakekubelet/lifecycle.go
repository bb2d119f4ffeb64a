package fakekubelet

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The annotations of pods.
const (
	annotationPrefix = "test.switchyard.dev/"
	// RunsForAnnotation is how long containers run, as a Go duration.
	RunsForAnnotation = annotationPrefix + "runs-for"
	// ExitAnnotation is the exit code of the containers.
	ExitAnnotation = annotationPrefix + "exit"
	// ReasonAnnotation is the reason why the containers end.
	ReasonAnnotation = annotationPrefix + "reason"
	// MessageAnnotation is the termination message of the containers.
	MessageAnnotation = annotationPrefix + "message"
	// WaitingAnnotation is a reason why the containers never start.
	WaitingAnnotation = annotationPrefix + "waiting"
)

// Exit codes of containers ended by a signal.
const (
	exitKilled     = 137
	exitTerminated = 143
)

// decision is what the fake kubelet does with a pod.
type decision struct {
	// status is the new status of the pod, or nil for no change.
	status *corev1.PodStatus
	// remove is true if the pod is to be removed after its status is written.
	remove bool
	// again is the time until the next decision; 0 means after the next change of the pod.
	again time.Duration
}

// decide returns what happens to a pod at the given time. It does not modify the pod.
func decide(pod *corev1.Pod, now time.Time) decision {
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	if pod.DeletionTimestamp != nil {
		if ended {
			return decision{remove: true}
		}
		return decision{status: ending(pod, now, corev1.ContainerStateTerminated{ExitCode: exitTerminated, Reason: "Error"}), remove: true}
	}
	if ended {
		return decision{}
	}
	if reason := pod.Annotations[WaitingAnnotation]; reason != "" {
		return wait(pod, now, reason)
	}
	started := startedAt(pod)
	if started.IsZero() {
		state := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now)}}
		return decision{status: statusOf(pod, now, corev1.PodRunning, state)}
	}
	runsFor, err := time.ParseDuration(pod.Annotations[RunsForAnnotation])
	if err != nil {
		runsFor = 0
	}
	if left := started.Add(runsFor).Sub(now); left > 0 {
		return decision{again: left}
	}
	return decision{status: ending(pod, now, endOf(pod))}
}

// wait returns the decision about a pod whose containers never start.
func wait(pod *corev1.Pod, now time.Time, reason string) decision {
	for _, container := range pod.Status.ContainerStatuses {
		if container.State.Waiting != nil && container.State.Waiting.Reason == reason {
			return decision{}
		}
	}
	state := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "requested by the test"}}
	return decision{status: statusOf(pod, now, corev1.PodPending, state)}
}

// startedAt returns when the containers of a pod started, or zero if they have not started.
func startedAt(pod *corev1.Pod) time.Time {
	for _, container := range pod.Status.ContainerStatuses {
		if container.State.Running != nil {
			return container.State.Running.StartedAt.Time
		}
	}
	return time.Time{}
}

// endOf returns how the containers of a pod end according to its annotations. An exit code that is not a number counts
// as 1.
func endOf(pod *corev1.Pod) corev1.ContainerStateTerminated {
	end := corev1.ContainerStateTerminated{Reason: pod.Annotations[ReasonAnnotation], Message: pod.Annotations[MessageAnnotation]}
	if text, ok := pod.Annotations[ExitAnnotation]; ok {
		code, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			code = 1
		}
		end.ExitCode = int32(code)
	} else if end.Reason == "OOMKilled" {
		end.ExitCode = exitKilled
	}
	if end.Reason == "" {
		end.Reason = "Completed"
		if end.ExitCode != 0 {
			end.Reason = "Error"
		}
	}
	return end
}

// ending returns the status of a pod whose containers have ended.
func ending(pod *corev1.Pod, now time.Time, end corev1.ContainerStateTerminated) *corev1.PodStatus {
	end.StartedAt, end.FinishedAt = metav1.NewTime(startedAt(pod)), metav1.NewTime(now)
	phase := corev1.PodSucceeded
	if end.ExitCode != 0 {
		phase = corev1.PodFailed
	}
	return statusOf(pod, now, phase, corev1.ContainerState{Terminated: &end})
}

// statusOf returns the status of a pod whose containers are all in the same state.
func statusOf(pod *corev1.Pod, now time.Time, phase corev1.PodPhase, state corev1.ContainerState) *corev1.PodStatus {
	ready := corev1.ConditionFalse
	if state.Running != nil {
		ready = corev1.ConditionTrue
	}
	status := &corev1.PodStatus{Phase: phase, StartTime: pod.Status.StartTime}
	if status.StartTime == nil {
		status.StartTime = &metav1.Time{Time: now}
	}
	for _, kind := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: kind, Status: ready, LastTransitionTime: metav1.NewTime(now)})
	}
	for _, container := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, State: state,
			Ready: state.Running != nil, Started: new(state.Running != nil),
		})
	}
	return status
}
