package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"switchyard/dev/kubernetes/fakekubelet"
)

// readLines sends the lines of r until r or the context ends.
func readLines(ctx context.Context, r io.Reader, lines chan<- string) {
	for scanner := bufio.NewScanner(r); scanner.Scan(); {
		select {
		case lines <- scanner.Text():
		case <-ctx.Done():
			return
		}
	}
}

// answer returns the reply to a command as one line.
func answer(err error) string {
	if err == nil {
		return "ok"
	}
	return "error " + strings.ReplaceAll(err.Error(), "\n", "; ")
}

// execute executes a command from the input: a verb and a service, or the number of nodes to add.
//
//	pause kubelet           stops the process, which keeps its connections
//	resume kubelet          continues it
//	kill kube-apiserver     ends it as a crash would
//	start kube-apiserver    starts it again, and waits until it is ready
//	fake-nodes 10           adds that many nodes, and waits until pods can be placed there
func (c *cluster) execute(ctx context.Context, line string) error {
	verb, object, _ := strings.Cut(strings.TrimSpace(line), " ")
	switch verb {
	case "pause":
		return c.pause(object)
	case "resume":
		return c.resume(object)
	case "kill":
		svc, err := c.kill(object)
		if err != nil {
			return err
		}
		if c.killed == nil {
			c.killed = map[string]service{}
		}
		c.killed[object] = svc
		return nil
	case "start":
		svc, ok := c.killed[object]
		if !ok {
			return fmt.Errorf("service %s was not killed", object)
		}
		delete(c.killed, object)
		return c.start(ctx, svc)
	case "fake-nodes":
		n, err := strconv.Atoi(object)
		if err != nil || n < 1 {
			return fmt.Errorf("fake-nodes %s: the number of nodes must be at least 1", object)
		}
		return c.addFakeNodes(ctx, n)
	}
	return fmt.Errorf("unknown command %q; use pause, resume, kill, start or fake-nodes", verb)
}

// addFakeNodes starts a fake kubelet with n more nodes, and waits until all of them accept pods.
func (c *cluster) addFakeNodes(ctx context.Context, n int) error {
	if n == 0 {
		return nil
	}
	first := c.fakeNodes + 1
	c.fakeNodes += n
	total := c.fakeNodes
	return c.start(ctx, service{
		name: fmt.Sprintf("fake-kubelet-%d", first), program: self,
		args: []string{
			"fake-kubelet", "--kubeconfig", c.files.path("kubeconfig"), "--first", strconv.Itoa(first), "--nodes", strconv.Itoa(n),
		},
		ready: func(ctx context.Context) error {
			nodes, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: fakekubelet.NodeLabel})
			if err != nil {
				return err
			}
			ready := 0
			for _, node := range nodes.Items {
				// The controller manager removes the taint that keeps pods off unready nodes.
				if len(node.Spec.Taints) == 0 {
					ready++
				}
			}
			if ready < total {
				return fmt.Errorf("%d of %d nodes are ready", ready, total)
			}
			return nil
		},
	})
}
