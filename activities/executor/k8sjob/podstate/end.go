package podstate

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"switchyard/activities/executor"
	v1 "switchyard/proto/switchyard/v1"
)

// MaxTerminationMessage is how much a kubelet keeps of the file terminationMessagePath, in bytes.
const MaxTerminationMessage = 4096

// LostPatience is how long a deleted pod may stay without a status after its grace period before its node counts as
// lost.
const LostPatience = 30 * time.Second

// End describes how the program of a pod ended.
type End struct {
	// Result holds the exit code, the signal or the failure.
	Result executor.Result
	// Message is the termination message of the program.
	Message string
	// Exited reports whether the container ran and its end is known.
	Exited bool
}

// Container returns the status of a container by name, or nil if the pod has none yet.
func Container(pod *corev1.Pod, name string) *corev1.ContainerStatus {
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Name == name {
			return &pod.Status.ContainerStatuses[i]
		}
	}
	return nil
}

// HasStarted reports whether the program's container runs or has run, so that it has a log.
func HasStarted(pod *corev1.Pod, container string) bool {
	c := Container(pod, container)
	return c != nil && (c.State.Running != nil || c.State.Terminated != nil || c.LastTerminationState.Terminated != nil)
}

// EndOf returns how the program of a pod ended, or nil if the pod does not show an end.
func EndOf(pod *corev1.Pod, container string, now time.Time) *End {
	end := &End{}
	c := Container(pod, container)
	var t *corev1.ContainerStateTerminated
	if c != nil {
		t = cmp.Or(c.State.Terminated, c.LastTerminationState.Terminated)
		end.Result.Image, end.Result.Container = imageDigest(c.ImageID), pod.Name
	}
	isOver := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
	if t == nil {
		switch {
		case isOver && disruption(pod) != "":
			end.Result.Failure = evicted(pod)
		case isOver:
			end.Result.Failure = neverStarted(pod)
		case pod.DeletionTimestamp != nil && disruption(pod) != "" && now.Sub(pod.DeletionTimestamp.Time) > LostPatience:
			end.Result.Failure = &executor.Failure{Reason: v1.ReasonEvicted, Err: fmt.Errorf("node %s of the cluster does not answer; pod %s is considered lost: %s", cmp.Or(pod.Spec.NodeName, "(none)"), pod.Name, disruption(pod))}
		default:
			return nil
		}
		end.Result.ExitCode = -1
		return end
	}
	end.Exited, end.Message = true, t.Message
	end.Result.ExitCode = int(t.ExitCode)
	switch {
	case t.ExitCode == 0 && !isEndedByDeletion(pod, t):
	case t.Reason == "OOMKilled":
		end.Result.OOMKilled = true
	case (t.Reason == "StartError" || t.Reason == "ContainerCannotRun") && strings.Contains(t.Message, executor.ArgumentsTooLong):
		end.Exited = false
		end.Result.Failure = &executor.Failure{Reason: v1.ReasonBadSpec, Err: executor.TooLongError(fmt.Sprintf("start container %s of pod %s", container, pod.Name))}
	case t.Reason == "StartError" || t.Reason == "ContainerCannotRun":
		end.Exited = false
		end.Result.Failure = &executor.Failure{Reason: v1.ReasonStartFailed, Err: fmt.Errorf("container %s of pod %s could not be started: %s", container, pod.Name, oneLine(t.Message))}
	case disruption(pod) != "":
		end.Result.Failure = evicted(pod)
	case isEndedByDeletion(pod, t):
		end.Result.Failure = &executor.Failure{Reason: v1.ReasonDeleted, Err: fmt.Errorf("pod %s was deleted by another party", pod.Name)}
	case t.Reason == "ContainerStatusUnknown":
		end.Result.Failure = &executor.Failure{Reason: v1.ReasonEvicted, Err: fmt.Errorf("the kubelet of node %s does not know how pod %s ended", pod.Spec.NodeName, pod.Name)}
	default:
		end.Result.Signal = signalOf(int(t.ExitCode), int(t.Signal))
	}
	return end
}

// isEndedByDeletion reports whether the program ended after the deletion of its pod had begun, or in the same second:
// Kubernetes timestamps have a resolution of one second.
func isEndedByDeletion(pod *corev1.Pod, t *corev1.ContainerStateTerminated) bool {
	if pod.DeletionTimestamp == nil {
		return false
	}
	grace := time.Duration(0)
	if pod.DeletionGracePeriodSeconds != nil {
		grace = time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
	}
	return !t.FinishedAt.Time.Before(pod.DeletionTimestamp.Add(-grace))
}

// disruption returns why the cluster ended a pod, or "" if it did not.
func disruption(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return join(c.Reason, c.Message)
		}
	}
	switch pod.Status.Reason {
	case "Evicted", "Preempting", "Shutdown", "NodeShutdown", "Terminated", "NodeLost", "NodeAffinity", "UnexpectedAdmissionError":
		return join(pod.Status.Reason, pod.Status.Message)
	}
	if strings.HasPrefix(pod.Status.Reason, "OutOf") { // the node refused the pod
		return join(pod.Status.Reason, pod.Status.Message)
	}
	return ""
}

func join(reason, message string) string {
	if message == "" {
		return reason
	}
	return reason + ": " + oneLine(message)
}

func evicted(pod *corev1.Pod) *executor.Failure {
	return &executor.Failure{Reason: v1.ReasonEvicted, Err: fmt.Errorf("the cluster ended pod %s: %s", pod.Name, disruption(pod))}
}

// neverStarted returns the failure for a pod that ended before its program ran.
func neverStarted(pod *corev1.Pod) *executor.Failure {
	for _, c := range pod.Status.InitContainerStatuses {
		if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
			return &executor.Failure{Reason: v1.ReasonStartFailed, Err: fmt.Errorf("init container %s of pod %s ended with exit code %d: %s", c.Name, pod.Name, t.ExitCode, join(t.Reason, t.Message))}
		}
	}
	err := errors.New(join(cmp.Or(pod.Status.Reason, string(pod.Status.Phase)), pod.Status.Message))
	return &executor.Failure{Reason: v1.ReasonStartFailed, Err: fmt.Errorf("pod %s ended before its program had started: %w", pod.Name, err)}
}

// JobEnd returns whether a Job is over and, if it failed, why.
func JobEnd(job *batchv1.Job) (over bool, reason, message string) {
	for _, c := range job.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		switch c.Type {
		case batchv1.JobComplete:
			return true, "", ""
		case batchv1.JobFailed:
			return true, c.Reason, c.Message
		}
	}
	return false, "", ""
}

// imageDigest returns the digest in an image id such as "docker.io/library/busybox@sha256:...", or the id if it has
// none.
func imageDigest(id string) string {
	if _, digest, ok := strings.Cut(id, "@"); ok {
		return digest
	}
	return id
}

// signals maps the Linux signals that end programs to their names.
var signals = map[int]string{
	1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 10: "SIGUSR1", 11: "SIGSEGV",
	12: "SIGUSR2", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM",
}

// signalOf returns the name of the signal that ended a container, or "". Runtimes report it as an exit code above 128.
func signalOf(exitCode, signal int) string {
	if signal != 0 {
		return signals[signal]
	}
	return signals[exitCode-128]
}
