package drill

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"switchyard/workflows/names"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	at := func(second int) string { return fmt.Sprintf("%d.00", second) }
	completed := func(by string) runTask {
		task := runTask{State: "completed"}
		task.Result.Stdout = by
		return task
	}
	for _, test := range []struct {
		name          string
		marks         string // of run r, task t
		task          runTask
		killed        int // second in which the worker of node a was killed; 0 means never
		lost, doubled int
		repeated      int
	}{
		{"done once", at(1) + " start r t 0 t/c1 a 10 0\n" + at(2) + " tick r t 0 t/c1 a 10 0\n" + at(3) + " end r t 0 t/c1 a 10 0\n", completed("by a 1\n"), 0, 0, 0, 0},
		{"moved", at(1) + " start r t 0 t/c1 a 10 0\n" + at(2) + " term r t 0 t/c1 a 10 0\n" + at(5) + " start r t 0 t/c2 b 11 0\n" + at(6) + " end r t 0 t/c2 b 11 0\n", completed("by b 2\n"), 0, 0, 0, 0},
		{"never done", at(1) + " start r t 0 t/c1 a 10 0\n", completed("by a 1\n"), 0, 1, 0, 0},
		{"never started", "", completed(""), 0, 1, 0, 0},
		{"another's result", at(1) + " start r t 0 t/c1 a 10 0\n" + at(3) + " end r t 0 t/c1 a 10 0\n", completed("by b 2\n"), 0, 1, 0, 0},
		{"done twice", at(1) + " start r t 0 t/c1 a 10 0\n" + at(3) + " end r t 0 t/c1 a 10 0\n" + at(4) + " start r t 0 t/c2 b 11 0\n" + at(5) + " end r t 0 t/c2 b 11 0\n", completed("by b 2\n"), 0, 0, 1, 0},
		{"done twice as its worker was killed", at(1) + " start r t 0 t/c1 a 10 0\n" + at(3) + " end r t 0 t/c1 a 10 0\n" + at(9) + " start r t 1 t/c2 b 11 0\n" + at(10) + " end r t 1 t/c2 b 11 0\n", completed("by b 2\n"), 4, 0, 0, 1},
		{"two at a time, by their ticks", at(1) + " start r t 0 t/c1 a 10 0\n" + at(3) + " start r t 1 t/c2 b 11 0\n" + at(4) + " tick r t 0 t/c1 a 10 0\n" + at(5) + " end r t 1 t/c2 b 11 0\n", completed("by b 2\n"), 0, 0, 1, 0},
		{"two at a time, by their processes", at(1) + " start r t 0 t/c1 a 10 0\n" + at(3) + " overlap r t 1 t/c2 b 10 0\n" + at(3) + " start r t 1 t/c2 b 11 0\n" + at(5) + " end r t 1 t/c2 b 11 0\n", completed("by b 2\n"), 0, 0, 1, 0},
		{"done by another batch with a claim of the same number", at(1) + " start r t 0 t/c2 a 10 0\n" + at(2) + " term r t 0 t/c2 a 10 0\n" + at(5) + " start r t 0 u/c2 b 11 0\n" + at(6) + " end r t 0 u/c2 b 11 0\n", completed("by b 2\n"), 0, 0, 0, 0},
		{"failed", at(1) + " start r t 0 t/c1 a 10 0\n" + at(3) + " fail r t 0 t/c1 a 10 0\n", runTask{State: "dead_letter"}, 0, 0, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			y, err := openCluster(t.Context(), Options{Dir: t.TempDir(), Scale: Fast})
			if err != nil {
				t.Fatal(err)
			}
			if test.killed > 0 {
				y.strikes["a"] = []time.Time{booted().Add(time.Duration(test.killed) * time.Second)}
			}
			if test.marks != "" {
				// An incomplete line does not count.
				if err := os.WriteFile(filepath.Join(y.Dir, "marks", "r.t"), []byte(test.marks+at(20)+" ti"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			v, err := y.judge(&run{ID: "r", Tasks: map[string]runTask{"t": test.task}})
			if err != nil {
				t.Fatal(err)
			}
			if len(v.lost) != test.lost || len(v.doubled) != test.doubled || v.repeated != test.repeated {
				t.Errorf("lost %v, doubled %v, done again %d; want %d, %d, %d", v.lost, v.doubled, v.repeated, test.lost, test.doubled, test.repeated)
			}
		})
	}
}

func TestCrowded(t *testing.T) {
	t.Parallel()
	at := func(second int) time.Time { return time.Unix(1_800_000_000+int64(second), 0) }
	for _, test := range []struct {
		name  string
		spans []span
		most  int
	}{
		{"nobody", nil, 0},
		{"one after the other", []span{{at(1), at(3), "a"}, {at(3), at(5), "b"}, {at(6), at(7), "c"}}, 1},
		{"two of three", []span{{at(1), at(4), "a"}, {at(5), at(7), "b"}, {at(3), at(5), "c"}}, 2},
		{"one within another", []span{{at(1), at(9), "a"}, {at(3), at(4), "b"}, {at(5), at(6), "c"}}, 2},
		{"at once", []span{{at(1), at(9), "a"}, {at(1), at(4), "b"}, {at(1), at(2), "c"}}, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if most, who := crowded(test.spans); most != test.most || len(who) != most {
				t.Errorf("%d at once (%s), want %d", most, who, test.most)
			}
		})
	}
}

// An attempt notices a process of an older claim of its task that is still alive.
func TestTaskFindsProcessesOfOlderClaims(t *testing.T) {
	t.Parallel()
	y, err := openCluster(t.Context(), Options{Dir: t.TempDir(), Scale: Fast})
	if err != nil {
		t.Fatal(err)
	}
	const task = "t[1]"
	gate := y.gate("end")
	start := func(claim int, gate string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), "sh", filepath.Join(y.Dir, "task.sh"))
		cmd.Env = append(os.Environ(), "CHAOS_DIR="+y.Dir, "CHAOS_GATE="+gate, "SWITCHYARD_RUN_ID=r", "SWITCHYARD_TASK_ID=r/"+task, "SWITCHYARD_ATTEMPT=0", "SWITCHYARD_NODE=a",
			fmt.Sprintf("SWITCHYARD_CLAIM=%s/%s/c%d", names.Home("r", "chain"), task, claim))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	first := start(1, gate)
	if err := y.awaitStarted("r", []string{task}, "a", 1); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(start(2, "").Wait(), y.open(gate), first.Wait(), start(3, "").Wait()); err != nil {
		t.Fatal(err)
	}
	executions, err := y.executions("r", task)
	if err != nil {
		t.Fatal(err)
	}
	var overlaps []int
	for _, e := range executions {
		overlaps = append(overlaps, e.overlaps)
	}
	if !slices.Equal(overlaps, []int{0, 1, 0}) {
		t.Errorf("the attempts have found %v live processes of older ones", overlaps)
	}
}
