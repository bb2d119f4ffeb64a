//go:build engines

package shell

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"switchyard/activities/executor"
	"switchyard/activities/executor/shell/cgroup"
	"switchyard/dev/testneeds"
)

func TestProcessThatLeavesItsCgroupIsEndedAndLogged(t *testing.T) {
	t.Parallel()
	root, err := cgroup.Root()
	if err != nil {
		testneeds.Missing(t, "%v", err)
	}
	var log testneeds.Output
	e := newExecutor(t, Options{Mechanism: Cgroup, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	a := executor.Attempt{ID: idPrefix + t.Name() + "/c1", Dirs: executor.Dirs{Base: t.TempDir()}, Env: map[string]string{"ROOT": root + "/cgroup.procs"}}
	left := fmt.Sprintf("sleep %d", 2_000_000+os.Getpid()) // differs from that of another run of this test
	_, out, err := run(t, e, a, `
mkfifo said
setsid sh -c 'echo $$ >$ROOT && echo moved; env -i `+left+`; :' >said 2>&1 &
read line <said
echo $line`)
	if err != nil || out != "moved\n" {
		t.Fatalf("printed %q, error %v", out, err)
	}
	testneeds.Await(t, "nothing of it is left", func() bool {
		return len(leftOf(t, a.ID)) == 0 && len(pidsOf(t, left)) == 0
	})
	testneeds.Await(t, "that is logged", func() bool {
		return strings.Contains(log.String(), "killed a process that left the cgroup of its attempt")
	})
}
