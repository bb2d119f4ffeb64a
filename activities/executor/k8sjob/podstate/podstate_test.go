package podstate

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "switchyard/proto/switchyard/v1"
)

var now = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// terminated returns a pod whose program ended with an exit code, a reason and an end time.
func terminated(code int32, reason string, at time.Time) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	pod.Status.Phase = corev1.PodSucceeded
	if code != 0 {
		pod.Status.Phase = corev1.PodFailed
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{
		{Name: "sidecar", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
		{Name: "main", ImageID: "docker.io/library/busybox@sha256:abc", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: code, Reason: reason, FinishedAt: metav1.NewTime(at), Message: "bye",
		}}},
	}
	return pod
}

// withMessage sets the message of the main container's end.
func withMessage(pod *corev1.Pod, text string) *corev1.Pod {
	pod.Status.ContainerStatuses[1].State.Terminated.Message = text
	return pod
}

func deletedAt(pod *corev1.Pod, request time.Time) *corev1.Pod {
	deadline := metav1.NewTime(request.Add(10 * time.Second))
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &deadline, new(int64(10))
	return pod
}

func disrupted(pod *corev1.Pod, reason string) *corev1.Pod {
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason, Message: "why\nit was",
	})
	return pod
}

func withoutStatus(phase corev1.PodPhase, reason, message string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{NodeName: "k1"}}
	pod.Status.Phase, pod.Status.Reason, pod.Status.Message = phase, reason, message
	return pod
}

func TestEndOfClassifiesEnds(t *testing.T) {
	t.Parallel()
	failedInit := withoutStatus(corev1.PodFailed, "", "")
	failedInit.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "prepare", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error", Message: "no disk"},
	}}}
	for name, test := range map[string]struct {
		pod          *corev1.Pod
		code         int
		reason, text string // of the failure
		signal       string
		oom, exited  bool
		hasNotEnded  bool
	}{
		"it completed":                       {pod: terminated(0, "Completed", now), exited: true},
		"it failed":                          {pod: terminated(42, "Error", now), code: 42, exited: true},
		"a signal":                           {pod: terminated(139, "Error", now), code: 139, signal: "SIGSEGV", exited: true},
		"a code above 128 that is no signal": {pod: terminated(255, "Error", now), code: 255, exited: true},
		"out of memory":                      {pod: terminated(137, "OOMKilled", now), code: 137, oom: true, exited: true},
		"its pod was deleted":                {pod: deletedAt(terminated(143, "Error", now), now.Add(-2*time.Second)), code: 143, reason: v1.ReasonDeleted, text: "pod p was deleted by another party", exited: true},
		"its pod was deleted, and it ended in order": {pod: deletedAt(terminated(0, "Completed", now), now.Add(-2*time.Second)), reason: v1.ReasonDeleted, exited: true},
		"its pod was deleted after it had completed": {pod: deletedAt(terminated(0, "Completed", now.Add(-2*time.Second)), now), exited: true},
		"its pod was deleted after it had failed":    {pod: deletedAt(terminated(7, "Error", now.Add(-2*time.Second)), now), code: 7, exited: true},
		"preemption": {pod: disrupted(deletedAt(terminated(143, "Error", now), now.Add(-2*time.Second)), "PreemptionByScheduler"), code: 143, reason: v1.ReasonEvicted, text: "PreemptionByScheduler: why it was", exited: true},
		"it completed although it was to be preempted": {pod: disrupted(terminated(0, "Completed", now), "PreemptionByScheduler"), exited: true},
		"eviction before it had a status":              {pod: withoutStatus(corev1.PodFailed, "Evicted", "The node was low on resource: memory."), code: -1, reason: v1.ReasonEvicted, text: "Evicted: The node was low on resource: memory."},
		"a kubelet that does not take it":              {pod: withoutStatus(corev1.PodFailed, "OutOfcpu", "no cpu"), code: -1, reason: v1.ReasonEvicted, text: "OutOfcpu: no cpu"},
		"an unknown status":                            {pod: terminated(137, "ContainerStatusUnknown", now), code: 137, reason: v1.ReasonEvicted, exited: true},
		"no such command":                              {pod: terminated(128, "StartError", now), code: 128, reason: v1.ReasonStartFailed, text: "could not be started: bye"},
		"too long a command":                           {pod: withMessage(terminated(128, "StartError", now), "exec /bin/sh: argument list too long: unknown"), code: 128, reason: v1.ReasonBadSpec, text: "$SWITCHYARD_INPUT"},
		"an init container failed":                     {pod: failedInit, code: -1, reason: v1.ReasonStartFailed, text: "init container prepare of pod p ended with exit code 3: Error: no disk"},
		"it runs":                                      {pod: withoutStatus(corev1.PodRunning, "", ""), hasNotEnded: true},
		"it is being deleted":                          {pod: deletedAt(withoutStatus(corev1.PodRunning, "", ""), now), hasNotEnded: true},
		"its node is lost, but not for long":           {pod: disrupted(deletedAt(withoutStatus(corev1.PodRunning, "", ""), now.Add(-30*time.Second)), "DeletionByTaintManager"), hasNotEnded: true},
		"its node is lost":                             {pod: disrupted(deletedAt(withoutStatus(corev1.PodRunning, "", ""), now.Add(-time.Minute)), "DeletionByTaintManager"), code: -1, reason: v1.ReasonEvicted, text: "node k1 of the cluster does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			end := EndOf(test.pod, "main", now)
			if (end == nil) != test.hasNotEnded {
				t.Fatalf("the end is %+v", end)
			}
			if end == nil {
				return
			}
			r := end.Result
			if r.ExitCode != test.code || r.Signal != test.signal || r.OOMKilled != test.oom || end.Exited != test.exited {
				t.Errorf("code %d, signal %q, oom %v, exited %v", r.ExitCode, r.Signal, r.OOMKilled, end.Exited)
			}
			if (r.Failure != nil) != (test.reason != "") {
				t.Fatalf("the failure is %+v", r.Failure)
			}
			if r.Failure != nil && (r.Failure.Reason != test.reason || !strings.Contains(r.Failure.Err.Error(), test.text)) {
				t.Errorf("the failure is %s: %v", r.Failure.Reason, r.Failure.Err)
			}
			if test.exited && (end.Message != "bye" || r.Image != "sha256:abc") {
				t.Errorf("message %q, image %q", end.Message, r.Image)
			}
		})
	}
}

func TestWaitOfQuotesTheCluster(t *testing.T) {
	t.Parallel()
	waiting := func(reason, message string) *corev1.Pod {
		pod := withoutStatus(corev1.PodPending, "", "")
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message},
		}}}
		return pod
	}
	unschedulable := withoutStatus(corev1.PodPending, "", "")
	unschedulable.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes are available: 3 Insufficient cpu.",
	}}
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		text string
		fail bool
	}{
		"no node":           {pod: unschedulable, text: "pod p waits for a node of the cluster: 0/3 nodes are available: 3 Insufficient cpu."},
		"an image":          {pod: waiting("ImagePullBackOff", "Back-off pulling image \"nosuch\""), text: `container main of pod p does not start: ImagePullBackOff: Back-off pulling image "nosuch"`, fail: true},
		"a bad image name":  {pod: waiting("InvalidImageName", ""), text: "container main of pod p does not start: InvalidImageName: no reason given", fail: true},
		"a missing Secret":  {pod: waiting("CreateContainerConfigError", "secret \"x\" not found"), text: `container main of pod p does not start: CreateContainerConfigError: secret "x" not found`, fail: true},
		"it is being made":  {pod: waiting("ContainerCreating", "")},
		"it runs":           {pod: withoutStatus(corev1.PodRunning, "", "")},
		"nothing was said":  {pod: withoutStatus(corev1.PodPending, "", "")},
		"init containers":   {pod: waiting("PodInitializing", "")},
		"something unusual": {pod: waiting("Other", "words"), text: "container main of pod p: Other: words"},
	} {
		if got := WaitOf(test.pod); got.Text != test.text || got.IsFailure != test.fail {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestJobEndQuotesTheCluster(t *testing.T) {
	t.Parallel()
	job := &batchv1.Job{}
	if over, _, _ := JobEnd(job); over {
		t.Error("a Job without conditions is over")
	}
	job.Status.Conditions = []batchv1.JobCondition{
		{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue},
		{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: batchv1.JobReasonDeadlineExceeded, Message: "too long"},
	}
	if over, reason, message := JobEnd(job); !over || reason != batchv1.JobReasonDeadlineExceeded || message != "too long" {
		t.Errorf("over %v, reason %q, message %q", over, reason, message)
	}
}
