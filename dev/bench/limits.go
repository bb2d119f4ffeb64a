package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/api/workflowservice/v1"
)

// limitShapes is the -shape that runs definitions beyond what Temporal allows one workflow at once. A part of a name
// after a colon selects the matching ones.
const limitShapes = "limits"

// wish is a definition that would exceed a limit of Temporal if its run requested everything at once.
type wish struct {
	name       string
	definition func() string
}

func wishes() []wish {
	return []wish{
		{"80 children with a definition of 58 KB each", childRuns(80, 58<<10)},
		{"5,000 children at once", childRuns(5000, 0)},
		{"300 large fan-outs of 501 instances at once, `batch: auto`", fanOuts(300, 501)},
		{"a join of 2,000 parents with outputs of 4 KiB", join(2000)},
	}
}

// tryLimits prints a row for each wish whose name contains a text: how long the run takes, and how long it takes to
// cancel a second run in the middle.
func tryLimits(ctx context.Context, only string) error {
	binary, dir, err := buildBinary(ctx)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Println("| wanted | completes in | cancelled after | nothing is left after | peak memory | longest history |")
	fmt.Println("|---|--:|--:|--:|--:|--:|")
	for _, w := range wishes() {
		if !strings.Contains(w.name, only) {
			continue
		}
		if err := tryLimit(ctx, binary, dir, w); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
	}
	return nil
}

func tryLimit(ctx context.Context, binary, dir string, w wish) error {
	h, err := startHost(ctx, binary, dir)
	if err != nil {
		return err
	}
	defer h.stop()
	began := time.Now()
	if _, err := h.run(ctx, w.definition(), 1); err != nil {
		return err
	}
	took := time.Since(began)
	out, err := h.command(ctx, "submit", filepath.Join(h.dir, "definition.json"), "-o", "json")
	if err != nil {
		return err
	}
	var run struct{ ID string }
	if err := json.Unmarshal(out, &run); err != nil {
		return fmt.Errorf("read the answer of submit: %w", err)
	}
	select {
	case <-time.After(took / 2):
	case <-ctx.Done():
		return ctx.Err()
	}
	began = time.Now()
	if _, err := h.command(ctx, "runs", "cancel", run.ID); err != nil {
		return err
	}
	for {
		open, err := h.openWorkflows(ctx)
		if err != nil {
			return err
		}
		if open == 0 && h.taskProcesses() == 0 {
			break
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	left := time.Since(began)
	history, err := h.longestHistory(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("| %s | %.0f s | %.0f s | %.1f s | %d MiB | %d |\n", w.name, took.Seconds(), took.Seconds()/2, left.Seconds(), h.peak(), history)
	return nil
}

// openWorkflows returns the number of open runs on the host, including their children.
func (h *host) openWorkflows(ctx context.Context) (int64, error) {
	res, err := h.conn.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{
		Namespace: h.conn.Namespace, Query: "ExecutionStatus = 'Running' AND WorkflowType IN ('Run', 'FanOut')",
	})
	return res.GetCount(), err
}

// taskProcesses returns the number of task processes that the host runs.
func (h *host) taskProcesses() (n int) {
	parents := map[int]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // cannot fail: the pattern is valid
	for _, file := range stats {
		text, err := os.ReadFile(file)
		_, rest, named := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		if err != nil || !named || len(fields) < 2 {
			continue // the process has ended
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		parents[pid], _ = strconv.Atoi(fields[1])
	}
	for pid := range parents {
		environ, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)) // empty for a process that has ended
		if !strings.Contains(string(environ), "SWITCHYARD_TASK_ID=") {
			continue
		}
		for up := parents[pid]; up > 1; up = parents[up] {
			if up == h.process.Process.Pid {
				n++
				break
			}
		}
	}
	return n
}

// childRuns returns a definition with a task that starts n child runs, whose definitions hold the given number of bytes
// besides a task.
func childRuns(n, bytes int) func() string {
	return func() string {
		inner := object{"name": "inner", "context": object{"text": strings.Repeat("x", bytes)}, "tasks": object{"a": shellTask("true")}}
		return text("children", object{"each": object{"type": "run", "parallel": n, "concurrency": n, "spec": object{"definition": inner}}})
	}
}

// fanOuts returns a definition with n independent tasks that fan out.
func fanOuts(n, instances int) func() string {
	return func() string {
		tasks := object{}
		for i := range n {
			task := shellTask("true")
			task["parallel"], task["batch"] = instances, "auto"
			tasks[number(i)] = task
		}
		return text("fans", tasks)
	}
}

// join returns a definition with n tasks that leave 4 KiB each, and a final task after all of them that reads the first
// and the last output.
func join(n int) func() string {
	return func() string {
		tasks, all := object{}, []string{}
		for i := range n {
			tasks[number(i)] = shellTask(`head -c 4096 /dev/zero | tr '\0' y | { printf text=; cat; } > "$SWITCHYARD_OUTPUT"`)
			all = append(all, number(i))
		}
		last := shellTask(`test "$N" = 8192`)
		last["dependsOn"] = all
		last["env"] = object{"N": fmt.Sprintf("${{ size(parent.%s.output.text) + size(parent.%s.output.text) }}", number(0), number(n-1))}
		tasks["last"] = last
		return text("join", tasks)
	}
}
