package kubetest

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	apiServer = "kube-apiserver"
	kubelet   = "kubelet"
)

// PauseAPI stops the process of the API server: connections stay open, and requests get no response until ResumeAPI.
func (c *Cluster) PauseAPI(t testing.TB) { c.execute(t, "pause "+apiServer) }

// ResumeAPI undoes PauseAPI.
func (c *Cluster) ResumeAPI(t testing.TB) { c.execute(t, "resume "+apiServer) }

// StopAPI kills the API server: connections break, and new ones are refused until StartAPI.
func (c *Cluster) StopAPI(t testing.TB) { c.execute(t, "kill "+apiServer) }

// StartAPI starts the API server after StopAPI, with the same address and objects, and waits until it is ready.
func (c *Cluster) StartAPI(t testing.TB) { c.execute(t, "start "+apiServer) }

// RestartAPI kills the API server and starts it again.
func (c *Cluster) RestartAPI(t testing.TB) {
	t.Helper()
	c.StopAPI(t)
	c.StartAPI(t)
}

// PauseKubelet stops the process of the real node's kubelet while its containers run. The node is lost after
// Options.NodeGrace. Its pods are deleted 10 s later if the cluster has another ready node: see CordonedNode.
func (c *Cluster) PauseKubelet(t testing.TB) { c.execute(t, "pause "+kubelet) }

// ResumeKubelet undoes PauseKubelet.
func (c *Cluster) ResumeKubelet(t testing.TB) { c.execute(t, "resume "+kubelet) }

// FakeNodes adds n fake nodes, and waits until pods can be placed on them. The annotations of a pod define the
// simulated behaviour of its containers; see the constants. By default the containers end at once with exit code 0.
// LogAnnotation defines their output.
func (c *Cluster) FakeNodes(t testing.TB, n int) { c.execute(t, fmt.Sprintf("fake-nodes %d", n)) }

// CordonedNode adds a fake node on which no pods are placed, except pods that already wait for a node. The controllers
// delete no pods while every node is lost, so a test that loses the only node with pods needs a cordoned node beside
// it.
func (c *Cluster) CordonedNode(t testing.TB) {
	t.Helper()
	nodes := c.Client.CoreV1().Nodes()
	list := func() []corev1.Node {
		found, err := nodes.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return found.Items
	}
	before := map[string]bool{}
	for _, node := range list() {
		before[node.Name] = true
	}
	c.FakeNodes(t, 1)
	for _, node := range list() {
		if before[node.Name] {
			continue
		}
		_, err := nodes.Patch(t.Context(), node.Name, types.MergePatchType, []byte(`{"spec":{"unschedulable":true}}`), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// The annotations of pods on fake nodes.
const (
	// RunsForAnnotation is how long the containers run, such as "1m".
	RunsForAnnotation = "test.switchyard.dev/runs-for"
	// ExitAnnotation is the exit code of the containers, such as "3".
	ExitAnnotation = "test.switchyard.dev/exit"
	// ReasonAnnotation is the reason why the containers end. For OOMKilled, the default exit code is 137.
	ReasonAnnotation = "test.switchyard.dev/reason"
	// MessageAnnotation is the termination message of the containers.
	MessageAnnotation = "test.switchyard.dev/message"
	// LogAnnotation is the output that the containers print when they start.
	LogAnnotation = "test.switchyard.dev/log"
	// WaitingAnnotation is the reason why the containers never start, such as ImagePullBackOff.
	WaitingAnnotation = "test.switchyard.dev/waiting"
)

func (c *Cluster) execute(t testing.TB, command string) {
	t.Helper()
	if err := c.process.execute(command); err != nil {
		t.Fatal(err)
	}
}
