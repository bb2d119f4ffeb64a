//go:build kubernetes

package kubetest

import (
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"switchyard/dev/testneeds"
)

func TestLongContainersOfRealNode(t *testing.T) {
	testneeds.Long(t)
	c := Start(t, Options{RealNode: true, NodeGrace: 20 * time.Second})
	namespace := c.NewNamespace(t)
	for _, test := range []struct {
		name, command string
		end           batchv1.JobConditionType
		exit          int32
		reasons       []string
		log           string
	}{
		{"succeed", "echo out; echo err >&2; echo bye >/dev/termination-log", batchv1.JobComplete, 0, []string{"Completed"}, "err\nout\n"},
		{"fail", "echo out; exit 42", batchv1.JobFailed, 42, []string{"Error"}, "out\n"},
		// containerd learns of the lack of memory and of the end by separate events.
		{"exceed their memory", "tail /dev/zero", batchv1.JobFailed, 137, []string{"OOMKilled", "Error"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			job := c.newJob(t, namespace, test.command, nil, func(pod *corev1.PodSpec) {
				pod.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("32Mi")}
			})
			if end, reason := c.awaitEnd(t, job); end != test.end {
				t.Errorf("the Job is %s (%s), want %s", end, reason, test.end)
			}
			pod := c.pod(t, job)
			end := pod.Status.ContainerStatuses[0].State.Terminated
			if end == nil || end.ExitCode != test.exit || !slices.Contains(test.reasons, end.Reason) {
				t.Errorf("the container has ended with %+v, want code %d and reason %s", end, test.exit, test.reasons)
			}
			// containerd copies the two streams independently.
			lines := slices.Sorted(strings.Lines(c.log(t, pod)))
			if log := strings.Join(lines, ""); test.log != "" && log != test.log {
				t.Errorf("the sorted log is %q, want %q", log, test.log)
			}
		})
	}
	t.Run("reach this machine", func(t *testing.T) {
		job := c.newJob(t, namespace, "ping -c 1 -W 60 "+HostAddress, nil)
		if end, _ := c.awaitEnd(t, job); end != batchv1.JobComplete {
			t.Errorf("ping: %s", c.log(t, c.pod(t, job)))
		}
	})
	t.Run("are deleted when their node is lost", func(t *testing.T) {
		c.CordonedNode(t)
		job := c.newJob(t, namespace, "echo up; sleep 1000", nil)
		eventually(t, "the pod runs", func() bool {
			pod := c.pod(t, job)
			return pod != nil && pod.Status.Phase == corev1.PodRunning
		})
		if node := c.pod(t, job).Spec.NodeName; node != RealNodeName {
			t.Fatalf("the pod is on node %s", node)
		}
		c.PauseKubelet(t)
		eventually(t, "the pod is marked for deletion", func() bool {
			pod := c.pod(t, job)
			return pod == nil || pod.DeletionTimestamp != nil
		})
		pod := c.pod(t, job)
		isDisrupted := false
		for _, condition := range pod.Status.Conditions {
			isDisrupted = isDisrupted || condition.Type == corev1.DisruptionTarget && strings.Contains(condition.Reason, "TaintManager")
		}
		if !isDisrupted {
			t.Errorf("the pod has the conditions %+v", pod.Status.Conditions)
		}
		c.ResumeKubelet(t)
		if end, _ := c.awaitEnd(t, job); end != batchv1.JobFailed {
			t.Errorf("the Job is %s", end)
		}
	})
}

// log returns the log of a pod's container.
func (c *Cluster) log(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	text, err := c.Client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
