package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"switchyard/dev/processes"
	"switchyard/dev/testneeds"
)

// TestLongFloodIsBounded makes a task print a GiB, and checks that neither the process nor the history grows by it.
func TestLongFloodIsBounded(t *testing.T) {
	testneeds.Long(t)
	p := start(t, "run", "-o", "json", "--store", t.TempDir(), write(t, fmt.Sprintf(`
name: flood
tasks:
  flood:
    type: shell
    spec: { command: "head -c %d /dev/zero | tr '\\0' 'x' | fold -w 1023" }
`, 1<<30)))
	if code := p.Wait(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	peak := p.Cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss >> 10
	t.Logf("peak memory %d MiB", peak)
	if peak > 600 {
		t.Errorf("peak memory is %d MiB", peak)
	}
	r := processes.ParseRun(t, p.Stdout.String()).Tasks["flood"].Result
	if !r.StdoutTruncated || len(r.Stdout) != 64<<10 {
		t.Errorf("the result holds %d bytes of output (truncated: %v), want the last 64 KiB", len(r.Stdout), r.StdoutTruncated)
	}
}

// TestLongOutputOfThousandTasksIsWhole makes each of many tasks print 64 KiB, and reads all of it.
func TestLongOutputOfThousandTasksIsWhole(t *testing.T) {
	testneeds.Long(t)
	const tasks = 1000
	var text strings.Builder
	text.WriteString("name: talkers\ntasks:\n")
	for i := range tasks {
		fmt.Fprintf(&text, "  t%d: { type: shell, resources: { cores: 0 }, spec: { command: 'head -c 65536 /dev/zero | tr \"\\0\" %c' } }\n", i, 'a'+i%26)
	}
	p := start(t, "run", "-o", "json", "--max-parallel", "16", write(t, text.String()))
	if code := p.Wait(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	d := processes.ParseRun(t, p.Stdout.String())
	for i := range tasks {
		r := d.Tasks[fmt.Sprintf("t%d", i)].Result
		if want := strings.Repeat(string(rune('a'+i%26)), 64<<10); r.Stdout != want || r.StdoutTruncated {
			t.Fatalf("task %d: %d bytes of output (truncated: %v), want all 64 KiB", i, len(r.Stdout), r.StdoutTruncated)
		}
	}
}
