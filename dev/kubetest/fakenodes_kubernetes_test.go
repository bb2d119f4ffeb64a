//go:build kubernetes

package kubetest

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// waitLimit bounds the wait for a condition. A Job takes 5 s on a busy machine.
const waitLimit = 4 * time.Minute

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(waitLimit); !holds(); time.Sleep(pollEvery) {
		if time.Now().After(end) {
			t.Fatalf("%s: not after %v", what, waitLimit)
		}
	}
}

// newJob creates a Job with one pod that runs a shell command.
func (c *Cluster) newJob(t *testing.T, namespace, command string, annotations map[string]string, changes ...func(*corev1.PodSpec)) *batchv1.Job {
	t.Helper()
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{GenerateName: "job-"}, Spec: batchv1.JobSpec{
		BackoffLimit: new(int32(0)),
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}, Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: new(int64(1)),
			Containers: []corev1.Container{{
				Name: "main", Image: BusyboxImage, ImagePullPolicy: corev1.PullNever, Command: []string{"sh", "-c", command},
			}},
		}},
	}}
	for _, change := range changes {
		change(&job.Spec.Template.Spec)
	}
	job, err := c.Client.BatchV1().Jobs(namespace).Create(t.Context(), job, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return job
}

// pod returns the first pod of a Job, or nil.
func (c *Cluster) pod(t *testing.T, job *batchv1.Job) *corev1.Pod {
	t.Helper()
	pods, err := c.Client.CoreV1().Pods(job.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=" + job.Name})
	if err != nil {
		t.Fatal(err)
	}
	if len(pods.Items) == 0 {
		return nil
	}
	return &pods.Items[0]
}

// awaitEnd waits for the end of a Job, and returns the condition that marks the end and its reason.
func (c *Cluster) awaitEnd(t *testing.T, job *batchv1.Job) (end batchv1.JobConditionType, reason string) {
	t.Helper()
	eventually(t, "Job "+job.Name+" ends", func() bool {
		current, err := c.Client.BatchV1().Jobs(job.Namespace).Get(t.Context(), job.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, condition := range current.Status.Conditions {
			if (condition.Type == batchv1.JobComplete || condition.Type == batchv1.JobFailed) && condition.Status == corev1.ConditionTrue {
				end, reason = condition.Type, condition.Reason
				return true
			}
		}
		return false
	})
	return end, reason
}

func TestPodsOfFakeNodesEndAsTheirAnnotationsSay(t *testing.T) {
	c := Shared(t)
	namespace := c.NewNamespace(t)
	for _, test := range []struct {
		name        string
		annotations map[string]string
		end         batchv1.JobConditionType
		state       corev1.ContainerStateTerminated
	}{
		{"at once", nil, batchv1.JobComplete, corev1.ContainerStateTerminated{Reason: "Completed"}},
		{"later", map[string]string{RunsForAnnotation: "50ms"}, batchv1.JobComplete, corev1.ContainerStateTerminated{Reason: "Completed"}},
		{"with a code", map[string]string{ExitAnnotation: "3", MessageAnnotation: "bye"}, batchv1.JobFailed,
			corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error", Message: "bye"}},
		{"out of memory", map[string]string{ReasonAnnotation: "OOMKilled"}, batchv1.JobFailed,
			corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			job := c.newJob(t, namespace, "", test.annotations)
			if end, reason := c.awaitEnd(t, job); end != test.end {
				t.Errorf("the Job is %s (%s), want %s", end, reason, test.end)
			}
			got := *c.pod(t, job).Status.ContainerStatuses[0].State.Terminated
			got.StartedAt, got.FinishedAt = metav1.Time{}, metav1.Time{}
			if got != test.state {
				t.Errorf("the container has ended with %+v, want %+v", got, test.state)
			}
		})
	}
}

func TestDeletedPodOfFakeNodeIsRemoved(t *testing.T) {
	c := Shared(t)
	job := c.newJob(t, c.NewNamespace(t), "", map[string]string{RunsForAnnotation: "1h"})
	eventually(t, "the pod runs", func() bool {
		pod := c.pod(t, job)
		return pod != nil && pod.Status.Phase == corev1.PodRunning
	})
	foreground := metav1.DeletePropagationForeground
	jobs := c.Client.BatchV1().Jobs(job.Namespace)
	if err := jobs.Delete(t.Context(), job.Name, metav1.DeleteOptions{PropagationPolicy: &foreground}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Job and its pod are removed", func() bool {
		_, err := jobs.Get(t.Context(), job.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err) && c.pod(t, job) == nil
	})
}

func TestPodOfFakeNodeThatNeverStartsHasAReason(t *testing.T) {
	c := Shared(t)
	job := c.newJob(t, c.NewNamespace(t), "", map[string]string{WaitingAnnotation: "ImagePullBackOff"})
	eventually(t, "the container waits", func() bool {
		pod := c.pod(t, job)
		return pod != nil && len(pod.Status.ContainerStatuses) == 1 && pod.Status.Phase == corev1.PodPending &&
			pod.Status.ContainerStatuses[0].State.Waiting.Reason == "ImagePullBackOff"
	})
}

func TestLogsOfFakePodsAreWhatTheirAnnotationsSay(t *testing.T) {
	c := Shared(t)
	job := c.newJob(t, c.NewNamespace(t), "true", map[string]string{LogAnnotation: "one\ntwo", RunsForAnnotation: "100ms"})
	var got []byte
	eventually(t, "the pod has a log", func() bool {
		pod := c.pod(t, job)
		if pod == nil || pod.Status.Phase == corev1.PodPending {
			return false // the log of a pod without a node is empty
		}
		var err error
		got, err = c.Client.CoreV1().Pods(job.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Follow: true}).DoRaw(t.Context())
		return err == nil
	})
	if string(got) != "one\ntwo\n" {
		t.Errorf("the log is %q", got)
	}
}
