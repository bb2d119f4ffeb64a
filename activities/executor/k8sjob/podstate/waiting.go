package podstate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Wait is what a pod waits for before its program starts.
type Wait struct {
	// Text describes it in the cluster's words, or is empty if nothing is known.
	Text string
	// IsFailure reports whether the cluster failed to get something that the pod needs, such as its image.
	IsFailure bool
}

// failures lists the reasons of a waiting container for which the kubelet retries forever.
var failures = []string{
	"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable",
	"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff",
}

// WaitOf returns what a pod waits for.
func WaitOf(pod *corev1.Pod) Wait {
	if pod.Status.Phase != corev1.PodPending && pod.Status.Phase != "" {
		return Wait{}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return Wait{Text: fmt.Sprintf("pod %s waits for a node of the cluster: %s", pod.Name, oneLine(cmp.Or(c.Message, c.Reason)))}
		}
	}
	var wait Wait
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		w := c.State.Waiting
		switch {
		case w == nil || w.Reason == "" || w.Reason == "PodInitializing":
		case slices.Contains(failures, w.Reason):
			return Wait{Text: fmt.Sprintf("container %s of pod %s does not start: %s: %s", c.Name, pod.Name, w.Reason, oneLine(cmp.Or(w.Message, "no reason given"))), IsFailure: true}
		case w.Message != "" && wait.Text == "":
			wait.Text = fmt.Sprintf("container %s of pod %s: %s: %s", c.Name, pod.Name, w.Reason, oneLine(w.Message))
		}
	}
	return wait
}

// oneLine joins the lines of a message of the cluster.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
