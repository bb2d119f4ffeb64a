package run_test

import (
	"fmt"
	"testing"

	"switchyard/activities/executor/fake"
	"switchyard/activities/secrets"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers"
	"switchyard/workers/workertest"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// everything is a run that sets each field of a definition that a run's input contains. Its nodes are a and b.
const everything = `
name: everything-%[1]s
description: Each field of the language.
context: { channel: stable }
failurePolicy: continue
maxParallel: 20
deadline: 1h
concurrency: { maxRuns: 3, strategy: queue }
inputs:
  kind: { type: string, description: What to do., required: true, enum: [plain, odd] }
  n: { type: integer, default: 3 }
tasks:
  first:
    type: shell
    spec: { command: x, sandbox: true }
    env: { KIND: "${{ workflow.input.kind }}" }
    secretEnv: { TOKEN: "env:TOKEN" }
    constraints:
      anyLabels: [none, fast]
      minMemoryMb: 1
      minDiskGb: 0.001
      avoidGaming: true
      allowedNodes: [%[2]s, %[3]s]
      forbiddenNodes: [%[3]s]
      requiresExecutors: [shell]
      requiresCapabilities: { disk: nvme }
      maxParallelPerNode: 2
    resources: { cores: 0.5, memoryMb: 16, maxProcesses: 100, maxOutputMb: 1 }
    retry: { maxRetries: 2, backoffMs: 1, backoffMultiplier: 1.5, maxBackoffMs: 10, retryable: true, when: attempt.exitCode == 1 }
    timeout: 30m
    deadline: 50m
    heartbeatTimeout: 1m
    priority: 7
    input: { path: /tmp/x }
    semaphore: { name: everything-%[1]s, limit: 2 }
  gpu:
    type: shell
    spec: { command: x }
    constraints: { requiresGpu: true, targetNode: "%[2]s" }
    resources: { cores: 0, gpus: 1, numaNode: 1 }
    condition: workflow.input.n > 3
    cache: { key: "'v'", ttl: 1h }
    mutex: everything-%[1]s
  fails:
    type: shell
    spec: { command: x }
    retry: { maxRetries: 0 }
    continueOnError: true
  after:
    type: shell
    spec: { command: x }
    dependsOn: [fails]
    when: all_done
  cleanup:
    type: shell
    spec: { command: x }
    dependsOn: [fails]
    onFailure: run
    condition: workflow.input.n == 3
  each:
    type: shell
    spec: { command: x }
    foreach: [p, q, r]
    concurrency: 2
    maxFailures: 1
    batch: 2
  some:
    type: shell
    spec: { command: x }
    parallel: 2
  ask: { type: approval, spec: { message: "Deploy?" } }
  inside:
    type: run
    spec: { definition: { name: inside-%[1]s, tasks: { only: { type: shell, spec: { command: x }, constraints: { nodeLabels: [%[1]s] }, resources: { cores: 0 } } } } }
`

func TestRunWithEveryFieldOfTheLanguageCompletes(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{
		"first": {fake.Exit(1), {}},
		"fails": {fake.Exit(1)},
	})
	c.Start("a", func(cfg *workers.NodeConfig) {
		cfg.Labels = append(cfg.Labels, "fast")
		cfg.Capabilities = map[string]string{"disk": "nvme", "sandbox": "true"}
		cfg.Secrets = &secrets.Resolver{Allow: secrets.AllowAll(), Getenv: func(string) (string, bool) { return "s3cret-value", true }}
	})
	c.Start("b")
	in := c.Input(fmt.Sprintf(everything, c.Label, c.Name("a"), c.Name("b")))
	in.Input = workertest.StructOf(map[string]any{"kind": "plain", "n": 3})
	h := c.Submit(in)
	h.AwaitTask("ask", func(task *v1.Task) bool { return task.GetState() == v1.TaskPaused })
	if err := sendUpdate(h, names.ApproveUpdate, &historyv1.TaskCommand{Task: "ask", By: "ann", Reason: "looks well"}); err != nil {
		t.Fatal(err)
	}
	workertest.CheckRun(t, h.Wait(), "completed", map[string]string{
		"first": "completed", "gpu": "skipped", "fails": "failed", "after": "completed", "cleanup": "completed",
		"each": "completed", "some": "completed", "ask": "completed", "inside": "completed",
	})
	workertest.Replay(t, "everything", limits.Run{}, h.History(""))
}

// gpuParts is a run that sets each field about GPUs, and the field that earlier versions of clients send.
const gpuParts = `
name: gpu-parts-%s
tasks:
  part: { type: shell, spec: { command: x }, resources: { gpus: 0.5, gpuMemoryMb: 20000, gpuModel: h100 }, condition: "false" }
  earlier: { type: shell, spec: { command: x }, resources: { wholeGpus: 2 }, condition: "false" }
`

func TestRunWithPartsOfGPUsCompletes(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, nil)
	h := c.Submit(c.Input(fmt.Sprintf(gpuParts, c.Label)))
	workertest.CheckRun(t, h.Wait(), "completed", map[string]string{"part": "skipped", "earlier": "skipped"})
	workertest.Replay(t, "gpu-parts", limits.Run{}, h.History(""))
}
