package fakekubelet

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// newPod returns a pod with two containers in a phase. Unless it is pending, the containers have been running for the
// duration ran.
func newPod(now time.Time, phase corev1.PodPhase, ran time.Duration, annotations map[string]string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Annotations: annotations},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}, {Name: "sidecar"}}},
		Status:     corev1.PodStatus{Phase: phase},
	}
	if phase == corev1.PodRunning {
		started := metav1.NewTime(now.Add(-ran))
		for _, container := range pod.Spec.Containers {
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
				Name: container.Name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}},
			})
		}
	}
	return pod
}

func TestPodIsDecidedByItsStateAndAnnotations(t *testing.T) {
	now := time.Unix(1000, 0)
	deleted := func(pod *corev1.Pod) *corev1.Pod {
		pod.DeletionTimestamp = &metav1.Time{Time: now}
		return pod
	}
	for _, test := range []struct {
		name   string
		pod    *corev1.Pod
		phase  corev1.PodPhase
		exit   int32
		reason string
		remove bool
		again  time.Duration
	}{
		{name: "a new pod runs", pod: newPod(now, corev1.PodPending, 0, nil), phase: corev1.PodRunning},
		{name: "one that runs ends", pod: newPod(now, corev1.PodRunning, 0, nil), phase: corev1.PodSucceeded, reason: "Completed"},
		{name: "one that runs for long is left alone", pod: newPod(now, corev1.PodRunning, time.Second,
			map[string]string{RunsForAnnotation: "3s"}), again: 2 * time.Second},
		{name: "one that has run for long ends", pod: newPod(now, corev1.PodRunning, time.Minute,
			map[string]string{RunsForAnnotation: "3s"}), phase: corev1.PodSucceeded, reason: "Completed"},
		{name: "one with an exit code fails", pod: newPod(now, corev1.PodRunning, 0,
			map[string]string{ExitAnnotation: "7"}), phase: corev1.PodFailed, exit: 7, reason: "Error"},
		{name: "a bad exit code is 1", pod: newPod(now, corev1.PodRunning, 0,
			map[string]string{ExitAnnotation: "seven"}), phase: corev1.PodFailed, exit: 1, reason: "Error"},
		{name: "without memory it is killed", pod: newPod(now, corev1.PodRunning, 0,
			map[string]string{ReasonAnnotation: "OOMKilled"}), phase: corev1.PodFailed, exit: exitKilled, reason: "OOMKilled"},
		{name: "one that has ended is left alone", pod: newPod(now, corev1.PodFailed, 0, nil)},
		{name: "a deleted one is terminated", pod: deleted(newPod(now, corev1.PodRunning, 0,
			map[string]string{RunsForAnnotation: "1h"})), phase: corev1.PodFailed, exit: exitTerminated, reason: "Error", remove: true},
		{name: "a deleted one that has ended is removed", pod: deleted(newPod(now, corev1.PodSucceeded, 0, nil)), remove: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := test.pod.DeepCopy()
			d := decide(test.pod, now)
			if d.remove != test.remove || d.again != test.again || (d.status == nil) != (test.phase == "") {
				t.Fatalf("decided %+v", d)
			}
			if d.status == nil {
				return
			}
			if d.status.Phase != test.phase || len(d.status.ContainerStatuses) != len(before.Spec.Containers) {
				t.Errorf("phase %s of %d containers", d.status.Phase, len(d.status.ContainerStatuses))
			}
			for _, container := range d.status.ContainerStatuses {
				end := container.State.Terminated
				if test.reason == "" && end == nil {
					continue
				}
				if end == nil || end.ExitCode != test.exit || end.Reason != test.reason {
					t.Errorf("container %s ended with %+v", container.Name, end)
				}
			}
		})
	}
}

func TestPodThatNeverStartsIsReportedOnce(t *testing.T) {
	now := time.Unix(1000, 0)
	pod := newPod(now, corev1.PodPending, 0, map[string]string{WaitingAnnotation: "ImagePullBackOff"})
	d := decide(pod, now)
	if d.status == nil || d.status.Phase != corev1.PodPending || d.status.ContainerStatuses[1].State.Waiting.Reason != "ImagePullBackOff" {
		t.Fatalf("decided %+v", d)
	}
	pod.Status = *d.status
	if d := decide(pod, now); d != (decision{}) {
		t.Errorf("decided %+v about a pod that is reported", d)
	}
}
