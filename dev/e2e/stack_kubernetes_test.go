//go:build kubernetes

package e2e

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"switchyard/dev/kubetest"
	"switchyard/dev/processes"
)

// kubeStack is a stack beside a Kubernetes with a real node. The workers of each test use their own name for the
// Kubernetes, so that no other worker takes their tasks.
type kubeStack struct {
	*processes.Stack
	cluster *kubetest.Cluster
}

// join starts a worker that uses the given name for the Kubernetes.
func (k *kubeStack) join(t *testing.T, name, cluster string, args ...string) *processes.Program {
	t.Helper()
	return startWorker(t, k.Temporal, k.Gateway, name, append([]string{
		"--kube", cluster + "=" + k.cluster.Kubeconfig, "--metrics-address", "none", "--offline-after", "5s", "--drain-timeout", "100ms",
	}, args...)...)
}

// jobs returns the Jobs of a run.
func (k *kubeStack) jobs(t *testing.T, namespace, id string) []batchv1.Job {
	t.Helper()
	found, err := k.cluster.Client.BatchV1().Jobs(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "switchyard.dev/run=" + id})
	if err != nil {
		t.Fatal(err)
	}
	return found.Items
}

// left returns the names of Switchyard's objects in a namespace.
func (k *kubeStack) left(t *testing.T, namespace string) (names []string) {
	t.Helper()
	options := metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=switchyard"}
	jobs, err := k.cluster.Client.BatchV1().Jobs(namespace).List(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	for _, job := range jobs.Items {
		names = append(names, "Job "+job.Name)
	}
	pods, err := k.cluster.Client.CoreV1().Pods(namespace).List(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		names = append(names, "pod "+pod.Name)
	}
	secrets, err := k.cluster.Client.CoreV1().Secrets(namespace).List(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range secrets.Items {
		names = append(names, "Secret "+secret.Name)
	}
	return names
}

// counting returns a definition with a Job that prints numbered lines, ten per second, and a line at its end.
func counting(name, cluster, namespace string, lines int) string {
	return fmt.Sprintf(`
name: %s
tasks:
  count:
    type: k8s_job
    resources: { cores: 0.05, memoryMb: 64 }
    retry: { maxRetries: 0 }
    spec:
      cluster: %s
      namespace: %s
      image: %s
      command: 'i=0; while test $i -lt %d; do echo "line $i"; i=$((i+1)); sleep 0.05; done; echo end'
`, name, cluster, namespace, kubetest.BusyboxImage, lines)
}

// counted returns the log of such a Job.
func counted(lines int) string {
	var text strings.Builder
	for i := range lines {
		fmt.Fprintf(&text, "line %d\n", i)
	}
	return text.String() + "end\n"
}

// helperImage is the image in the archive of helperArchive.
const helperImage = "switchyard:e2e"

// helperArchive returns an archive in the format of `docker save` with an image that contains only a static switchyard
// as its entry point.
func helperArchive(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	static := filepath.Join(dir, "switchyard")
	// Linked this way the binary is static and still shares all compiled packages with the other binary; without cgo
	// most would be compiled again.
	cmd := exec.Command("go", "build", "-ldflags=-s -w -linkmode=external -extldflags=-static", "-o", static, ".")
	cmd.Dir = repository
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	layer := filepath.Join(dir, "layer.tar")
	writeTar(t, layer, map[string]string{"switchyard": static})
	sum := sha256.New()
	copyFile(t, sum, layer)
	config := map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "config": map[string]any{"Entrypoint": []string{"/switchyard"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + hex.EncodeToString(sum.Sum(nil))}},
	}
	files := map[string]string{"layer.tar": layer}
	for name, value := range map[string]any{
		"config.json": config, "manifest.json": []any{map[string]any{"Config": "config.json", "RepoTags": []string{helperImage}, "Layers": []string{"layer.tar"}}},
	} {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = filepath.Join(dir, name)
		if err := os.WriteFile(files[name], text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	archive := filepath.Join(dir, "image.tar")
	writeTar(t, archive, files)
	return archive
}

// writeTar writes an archive of files, keyed by their names in it.
func writeTar(t *testing.T, path string, files map[string]string) {
	t.Helper()
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	w := tar.NewWriter(out)
	for name, from := range files {
		info, err := os.Stat(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: info.Size()}); err != nil {
			t.Fatal(err)
		}
		copyFile(t, w, from)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func copyFile(t *testing.T, w io.Writer, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := io.Copy(w, f); err != nil {
		t.Fatal(err)
	}
}
