//go:build engines

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"switchyard/activities/executor/container/enginetest"
)

// TestUnlikeTasksShareAFolder checks that a shell, a sandbox and a container with a user of its own read and change the files of the
// others in their workspace, and what a container leaves as an artifact.
func TestUnlikeTasksShareAFolder(t *testing.T) {
	t.Parallel()
	s := startDev(t, "--nodes", "2")
	id := s.Submit(t, fmt.Sprintf(`
name: unlike
tasks:
  plain:
    type: shell
    workspace: work
    spec: { command: "umask 077; mkdir sub && echo plain > sub/steps" }
  boxed:
    type: shell
    dependsOn: [plain]
    workspace: work
    retry: { maxRetries: 0 }
    spec: { sandbox: true, command: "echo boxed >> sub/steps && ls -d $PWD/../*" }
  contained:
    type: container
    dependsOn: [boxed]
    workspace: work
    retry: { maxRetries: 0 }
    spec: { image: %s, user: "1000", network: none, command: "echo contained >> sub/steps && pwd && id -u" }
    artifacts: { out: [{ name: steps, path: sub }] }
  again:
    type: shell
    dependsOn: [contained]
    workspace: work
    retry: { maxRetries: 0 }
    spec: { command: "echo again >> sub/steps && cat sub/steps" }
  fetched:
    type: shell
    dependsOn: [contained]
    spec: { command: cat steps }
    artifacts: { in: [{ from: contained.steps }] }
`, enginetest.Image(t)))
	s.AwaitRun(t, id, "completed")
	d := s.Get(t, id)
	for name, want := range map[string]string{"again": "plain\nboxed\ncontained\nagain\n", "fetched": "plain\nboxed\ncontained\n", "contained": "/switchyard/files\n1000\n"} {
		if got := d.Tasks[name].Result.Stdout; got != want {
			t.Errorf("%s printed %q, want %q", name, got, want)
		}
	}
	if around := strings.Fields(d.Tasks["boxed"].Result.Stdout); len(around) != 1 {
		t.Errorf("the sandbox sees %q", around)
	}
}
