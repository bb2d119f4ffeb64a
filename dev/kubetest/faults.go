package kubetest

import (
	"fmt"
	"testing"
)

const (
	apiServer = "kube-apiserver"
	kubelet   = "kubelet"
)

// PauseAPI stops the process of the API server: connections stay open, and requests get no answer until ResumeAPI.
func (c *Cluster) PauseAPI(t testing.TB) { c.execute(t, "pause "+apiServer) }

// ResumeAPI ends what PauseAPI has begun.
func (c *Cluster) ResumeAPI(t testing.TB) { c.execute(t, "resume "+apiServer) }

// StopAPI kills the API server: connections break, and new ones are refused until StartAPI.
func (c *Cluster) StopAPI(t testing.TB) { c.execute(t, "kill "+apiServer) }

// StartAPI starts the API server after StopAPI, with the same address and objects, and waits until it is ready.
func (c *Cluster) StartAPI(t testing.TB) { c.execute(t, "start "+apiServer) }

// RestartAPI kills the API server, and starts it again.
func (c *Cluster) RestartAPI(t testing.TB) {
	t.Helper()
	c.StopAPI(t)
	c.StartAPI(t)
}

// PauseKubelet stops the process of the real node's kubelet, while its containers run. The node becomes NotReady after
// 20 s, and its pods are deleted 10 s later if the cluster has another node that is ready, such as a fake one.
func (c *Cluster) PauseKubelet(t testing.TB) { c.execute(t, "pause "+kubelet) }

// ResumeKubelet ends what PauseKubelet has begun.
func (c *Cluster) ResumeKubelet(t testing.TB) { c.execute(t, "resume "+kubelet) }

// FakeNodes adds n fake nodes, and waits until pods can be placed on them. Annotations of a pod say what its containers
// seem to do there; see the constants. By default they end at once with exit code 0. What they print, LogAnnotation says.
func (c *Cluster) FakeNodes(t testing.TB, n int) { c.execute(t, fmt.Sprintf("fake-nodes %d", n)) }

// Annotations of pods on fake nodes.
const (
	// RunsForAnnotation is how long the containers run, such as "1m".
	RunsForAnnotation = "test.switchyard.dev/runs-for"
	// ExitAnnotation is the exit code of the containers, such as "3".
	ExitAnnotation = "test.switchyard.dev/exit"
	// ReasonAnnotation is why the containers end. The exit code is 137 by default if it is OOMKilled.
	ReasonAnnotation = "test.switchyard.dev/reason"
	// MessageAnnotation is the termination message of the containers.
	MessageAnnotation = "test.switchyard.dev/message"
	// LogAnnotation is what the containers print when they start.
	LogAnnotation = "test.switchyard.dev/log"
	// WaitingAnnotation is why the containers never start, such as ImagePullBackOff.
	WaitingAnnotation = "test.switchyard.dev/waiting"
)

func (c *Cluster) execute(t testing.TB, command string) {
	t.Helper()
	if err := c.process.execute(command); err != nil {
		t.Fatal(err)
	}
}
