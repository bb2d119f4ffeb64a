//go:build engines

package e2e

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"

	"switchyard/activities/executor/container/enginetest"
	"switchyard/dev/processes"
	"switchyard/dev/scriptedmodel"
)

// These are the heartbeat time-outs of the tasks of TestLeaseOfContainerOutlivesItsWorker. A worker that starts again has its name
// after 6 s.
const (
	containedLease = 8 * time.Second
	restartedLease = 18 * time.Second
)

// The container of a worker that is killed or stalled has ended before its task starts elsewhere. A worker that starts again
// before that continues the same container, beyond the end of the first lease.
func TestLeaseOfContainerOutlivesItsWorker(t *testing.T) {
	t.Parallel()
	image := enginetest.Image(t)
	s := startDev(t, "--nodes", "0")
	for name, strike := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "stalled": syscall.SIGSTOP} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id, worker, first := startContained(t, s, image, name, containedLease, privateDir(t), t.TempDir())
			startWorker(t, s.Temporal, s.Gateway, name+"-other", "--label", name, "--metrics-address", "none", "--scratch-dir", privateDir(t))
			worker.Signal(strike)
			processes.Await(t, "it runs elsewhere", func() bool {
				found := containersOf(t, id)
				if len(found) > 1 {
					t.Fatalf("containers %v run at once", found)
				}
				return len(found) == 1 && found[0] != first
			})
			if strike == syscall.SIGSTOP {
				worker.Signal(syscall.SIGCONT)
			}
		})
	}
	t.Run("restarted", func(t *testing.T) {
		t.Parallel()
		scratch, gates := privateDir(t), t.TempDir()
		id, worker, first := startContained(t, s, image, "restarted", restartedLease, scratch, gates)
		struck := time.Now()
		worker.Signal(syscall.SIGKILL)
		worker.Wait()
		startContainedWorker(t, s, "restarted", scratch, gates)
		s.AwaitTask(t, id, "job", "running")
		processes.Await(t, "the first lease is over", func() bool {
			if found := containersOf(t, id); len(found) != 1 || found[0] != first {
				t.Fatalf("containers %v, want %s", found, first)
			}
			return time.Since(struck) > restartedLease
		})
		open(t, gates, "end")
		d := s.End(t, id)
		if d.State != "completed" || d.Tasks["job"].Attempt != 0 {
			t.Errorf("it has ended as %+v", d)
		}
		if got := d.Tasks["job"].Result.Stdout; got != "begun\nended\n" {
			t.Errorf("it has printed %q", got)
		}
	})
}

// The command of an agent that runs in a container ends with its worker, and soon after the worker has stalled: the loop of the
// agent is in the worker.
func TestCommandOfAgentEndsWithItsWorker(t *testing.T) {
	t.Parallel()
	image := enginetest.Image(t)
	s := startDev(t, "--nodes", "0")
	for i, name := range []string{"killed", "stalled"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seconds := strconv.Itoa(os.Getpid()*1000 + 900 + i) // identifies the process
			m := startHeldModel(t, "no such words", scriptedmodel.Script{Rules: []scriptedmodel.Rule{
				{When: agentTurns(0, ""), Reply: agentCalls("shell", `{"command": "exec sleep `+seconds+`"}`)},
			}})
			label := fmt.Sprintf("agent-%d", i)
			worker := startWorker(t, s.Temporal, s.Gateway, label, "--label", label, "--metrics-address", "none", "--scratch-dir", privateDir(t))
			s.Submit(t, fmt.Sprintf(`name: commanding
tasks:
  agent:
    type: subagent
    constraints: { nodeLabels: [%s] }
    spec: { model: scripted, baseUrl: %s, tools: [shell], image: %q, prompt: run }
`, label, m.url, image))
			processes.Await(t, "the command runs", func() bool { return sleepers(t, seconds) == 1 })
			if name == "killed" {
				worker.Signal(syscall.SIGKILL)
			} else {
				worker.Signal(syscall.SIGSTOP)
				defer worker.Signal(syscall.SIGCONT)
			}
			processes.Await(t, "the command has ended", func() bool { return sleepers(t, seconds) == 0 })
		})
	}
}

// startContained starts a worker with a running container, which has a heartbeat time-out and ends once the file "end" is in gates. It returns the run, the
// worker and the ID of the container.
func startContained(t *testing.T, s *processes.Stack, image, label string, lease time.Duration, scratch, gates string) (run string, worker *processes.Program, id string) {
	t.Helper()
	worker = startContainedWorker(t, s, label, scratch, gates)
	run = s.Submit(t, fmt.Sprintf(`name: contained
tasks:
  job:
    type: container
    heartbeatTimeout: %v
    constraints: { nodeLabels: [%s] }
    spec:
      image: %q
      pullPolicy: never
      network: none
      command: "echo begun; while [ ! -e /gates/end ]; do sleep 0.1; done; echo ended"
`, lease, label, image))
	processes.Await(t, "the container runs", func() bool { return len(containersOf(t, run)) == 1 })
	s.AwaitTask(t, run, "job", "running")
	return run, worker, containersOf(t, run)[0]
}

// startContainedWorker starts a worker that mounts a directory into its containers.
func startContainedWorker(t *testing.T, s *processes.Stack, label, scratch, gates string) *processes.Program {
	t.Helper()
	if err := os.Chmod(gates, 0o755); err != nil {
		t.Fatal(err)
	}
	return startWorker(t, s.Temporal, s.Gateway, label, "--label", label, "--mount", gates+":/gates", "--metrics-address", "none", "--scratch-dir", scratch)
}

// containersOf returns the IDs of the running containers of a run.
func containersOf(t *testing.T, run string) (ids []string) {
	t.Helper()
	found, err := enginetest.Engine(t).ContainerList(t.Context(), container.ListOptions{Filters: filters.NewArgs(filters.Arg("label", "switchyard.run="+run))})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range found {
		ids = append(ids, c.ID)
	}
	return ids
}

// privateDir returns a folder that only its user can access.
func privateDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}
