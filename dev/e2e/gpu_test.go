package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchyard/dev/processes"
)

// oneH200 stands in for nvidia-smi on a machine with one GPU, which a test machine lacks.
const oneH200 = `#!/bin/sh
case "$1" in
--query-gpu=*) echo '0, NVIDIA H200, 143771, 5, 0, 00000000:01:00.0' ;;
*) echo 'GPU 0: NVIDIA H200 (UUID: GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77)' ;;
esac
`

// TestTasksShareAGPU runs two tasks with half of the same GPU at the same time. A third one waits for its part, and one with the
// whole GPU for all of them. The node has the Multi-Process Service.
func TestTasksShareAGPU(t *testing.T) {
	t.Parallel()
	dir, bin := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "nvidia-smi"), []byte(oneH200), 0o700); err != nil {
		t.Fatal(err)
	}
	s := startDevWith(t, binary, []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "CUDA_MPS_PIPE_DIRECTORY=" + dir}, "--nodes", "1")
	half := `echo "$CUDA_VISIBLE_DEVICES $CUDA_MPS_ACTIVE_THREAD_PERCENTAGE ${CUDA_MPS_PINNED_DEVICE_MEM_LIMIT-unlimited}"; ` + gate(dir, "halves")
	id := s.Submit(t, fmt.Sprintf(`
name: shared
defaults: { type: shell, resources: { cores: 0 } }
tasks:
  a: { spec: { command: %[1]q }, resources: { gpus: 0.5, gpuModel: h-200 } }
  b: { spec: { command: %[1]q }, resources: { gpus: 0.5, gpuMemoryMb: 20000 } }
`, half))
	s.AwaitTask(t, id, "a", "running")
	s.AwaitTask(t, id, "b", "running")
	for task, want := range map[string]string{"a": "0 50 unlimited\n", "b": "0 50 0=20000M\n"} {
		awaitLog(t, s.Gateway, id, task, "shows its part", func(log string) bool { return strings.HasSuffix(log, want) })
	}
	var third, whole struct{ ID string }
	s.Call(t, "TaskService/SubmitTask", map[string]any{"type": "shell", "spec": map[string]any{"command": "true"}, "resources": map[string]any{"cores": 0, "gpus": 0.5}}, &third)
	waits := func(id, reason string) {
		processes.AwaitText(t, "the reason why the task waits", func() string {
			stdout, _ := do(t, s.Gateway, 0, "runs", "explain", id, "shell")
			return stdout
		}, func(text string) bool { return strings.Contains(text, reason) })
	}
	waits(third.ID, "0 of a GPU free of 0.5 asked")
	s.Call(t, "TaskService/SubmitTask", map[string]any{"type": "shell", "spec": map[string]any{"command": "true"}, "resources": map[string]any{"cores": 0, "gpus": 1}}, &whole)
	waits(whole.ID, "0 GPUs free of 1 asked")
	nodes, _ := do(t, s.Gateway, 0, "nodes", "list")
	node := strings.Fields(strings.Split(nodes, "\n")[1])[0]
	processes.AwaitText(t, "the parts that the node shows", func() string {
		stdout, _ := do(t, s.Gateway, 0, "nodes", "get", node)
		return stdout
	}, func(text string) bool {
		return strings.Contains(text, "0/1 free") && strings.Contains(text, "0 (0.5 of it, 20000 MiB)")
	})
	processes.AwaitText(t, "the part that the queue shows", func() string {
		stdout, _ := do(t, s.Gateway, 0, "queue")
		return stdout
	}, func(text string) bool { return strings.Contains(text, "0.5 GPUs") })
	open(t, dir, "halves")
	for _, id := range []string{id, third.ID, whole.ID} {
		if r := s.End(t, id); r.State != "completed" {
			t.Errorf("run %s is %s", id, r.State)
		}
	}
	for _, path := range []string{"/v1/tasks", "/switchyard.v1.TaskService/SubmitTask"} {
		res, err := http.Post(s.Gateway+path, "application/json", strings.NewReader(`{"type":"shell","spec":{"command":"true"},"resources":{"gpus":1.5}}`))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		if res.Body.Close(); err != nil || res.StatusCode != http.StatusBadRequest || !strings.Contains(string(text), "resources.gpus is 1.5; it must be a whole number") {
			t.Errorf("%s: %d %s %v", path, res.StatusCode, text, err)
		}
	}
}
