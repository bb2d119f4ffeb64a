package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Machine-wide names that a real node uses. They are fixed, so a machine can have only one real node at a time.
const (
	nodeName   = "node1"
	bridge     = "sykube0"
	nodeIP     = "10.231.77.1"
	podSubnet  = "10.231.77.0/24"
	nodeCgroup = "switchyard-kubernetes"
)

// containerdSocket is in the node's private /run.
const containerdSocket = "/run/containerd/containerd.sock"

// startNode starts containerd and a kubelet, and waits until the node is ready. It runs in the node's namespaces.
func (c *cluster) startNode(ctx context.Context, o upOptions) error {
	if err := c.files.writeNodeConfig(o.kubeletPort, o.cniBin); err != nil {
		return err
	}
	if err := makeBridge(); err != nil {
		return err
	}
	if err := makeCgroups(); err != nil {
		return err
	}
	err := c.start(ctx, service{
		name: "containerd", program: "containerd", args: []string{"--config", c.files.path("containerd.toml")},
		ready: func(ctx context.Context) error { return ctr(ctx, "version") },
	})
	if err != nil {
		return err
	}
	archive := c.files.path("images.tar")
	if err := writeBusyboxImages(archive, o.busybox); err != nil {
		return fmt.Errorf("create images of %s: %w", o.busybox, err)
	}
	for _, archive := range append([]string{archive}, strings.FieldsFunc(o.images, func(r rune) bool { return r == ',' })...) {
		if err := ctr(ctx, "-n", "k8s.io", "images", "import", archive); err != nil {
			return fmt.Errorf("import %s: %w", archive, err)
		}
	}
	return c.start(ctx, service{
		name: kubeletService, program: self,
		args: []string{
			"kubelet",
			"--kubeconfig=" + c.files.path("node.kubeconfig"), "--config=" + c.files.path("kubelet.yaml"),
			"--root-dir=" + c.files.path("kubelet"), "--cert-dir=" + c.files.path("kubelet-pki"),
			"--hostname-override=" + nodeName, "--node-ip=" + nodeIP,
		},
		ready: func(ctx context.Context) error {
			node, err := c.client.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
			if err != nil {
				return err
			}
			for _, condition := range node.Status.Conditions {
				if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue && len(node.Spec.Taints) == 0 {
					return nil
				}
			}
			return errors.New("the node is not ready")
		},
	})
}

// ctr runs a command of containerd's client.
func ctr(ctx context.Context, args ...string) error {
	return run(ctx, "ctr", append([]string{"--address", containerdSocket}, args...)...)
}

// run runs a program. Its error contains the output.
func run(ctx context.Context, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// makeBridge creates the bridge for the pods. The API server calls the kubelet at the bridge's address, because a
// node's address may not be a loopback address.
func makeBridge() error {
	removeBridge()
	for _, args := range [][]string{
		{"link", "add", bridge, "type", "bridge"},
		{"addr", "add", nodeIP + "/24", "dev", bridge},
		{"link", "set", bridge, "up"},
	} {
		if err := run(context.Background(), "ip", args...); err != nil {
			return err
		}
	}
	return nil
}

// removeBridge removes the bridge if it exists.
func removeBridge() { _ = exec.Command("ip", "link", "del", bridge).Run() }

// cgroupRoots returns the folders in which a node has a control group: one per hierarchy for version 1, or the only one
// for version 2.
func cgroupRoots() []string {
	const root = "/sys/fs/cgroup"
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err == nil {
		return []string{root}
	}
	var roots []string
	for _, hierarchy := range []string{"blkio", "cpu", "cpuacct", "cpuset", "devices", "freezer", "hugetlb", "memory", "pids", "systemd"} {
		if path := filepath.Join(root, hierarchy); isFolder(path) {
			roots = append(roots, path)
		}
	}
	return roots
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// makeCgroups creates the control groups that the kubelet expects as parents of all pods.
func makeCgroups() error {
	var errs []error
	for _, root := range cgroupRoots() {
		errs = append(errs, os.MkdirAll(filepath.Join(root, nodeCgroup), 0o755))
	}
	return errors.Join(errs...)
}

// removeCgroups removes the control groups of an ended node. It fails while a process is in one of them.
func removeCgroups() error {
	var errs []error
	for _, root := range cgroupRoots() {
		var groups []string
		err := filepath.WalkDir(filepath.Join(root, nodeCgroup), func(path string, entry os.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				groups = append(groups, path)
			}
			return err
		})
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
		for i := len(groups) - 1; i >= 0; i-- {
			errs = append(errs, os.Remove(groups[i]))
		}
	}
	return errors.Join(errs...)
}
