package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/api/workflowservice/v1"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers"
)

// scaleShapes is the -shape that measures large runs. A part of a name after a colon, as in "scale:chain", selects the
// matching ones.
const scaleShapes = "scale"

// big is one large run, or many runs.
type big struct {
	name string
	// per is the divisor of the time.
	per  int
	unit string
	// definition is the document to run, and copies the number of concurrent runs of it.
	definition func() string
	copies     int
	// against is measured immediately before, for comparison. It may be nil.
	against func(ctx context.Context, h *host) (spent, int, error)
	reach   string
}

// bigs returns the large runs, each with its baseline.
func bigs() []big {
	return []big{
		{"20,000 instances of `true`, `batch: auto`; on the right `xargs -P2 -n1 sh -c true`", 20_000, " a task", fanOut(20_000), 1, xargs(20_000), "1.67"},
		{"100,000 instances of `true`, `batch: auto`", 100_000, " a task", fanOut(100_000), 1, nil, ""},
		{"one DAG of 10,000 `true`, wide; on the right 200", 10_000, " a task", document("wide", 10_000, nil), 1, again(document("wide", 200, nil), 200, 10), "1.3"},
		{"a level 2,000 wide between two tasks", 2002, " a task", level(2000), 1, nil, ""},
		{"chain of 10,000 `true`; on the right 200", 10_000, " a hop", document("chain", 10_000, before), 1, again(document("chain", 200, before), 200, 2), "1.3"},
		{"10,000 tasks with `cores: 1`, which wait for capacity", 10_000, " a task", waiting(10_000), 1, nil, ""},
		{"1,000 tasks that print 64 KiB and leave 8 KiB of output", 1000, " a task", loud(1000), 1, nil, ""},
		{"a definition of 1 MiB, 2,000 tasks", 2000, " a task", heavy(2000), 1, nil, ""},
		{"1,000 runs of one task at once on 3 nodes", 1000, " a run", document("one", 1, nil), 1000, nil, ""},
	}
}

// host is a `switchyard dev` with three nodes in a process of its own.
type host struct {
	binary, dir string
	gateway     string
	conn        *workers.Connection
	process     *exec.Cmd
}

// scale prints a row for each large run whose name contains a text.
func scale(ctx context.Context, only string) error {
	binary, dir, err := buildBinary(ctx)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Println("In brackets: processor time, that of the host and of what it has started.")
	fmt.Println()
	fmt.Println("| shape | Switchyard | on the right | ratio | to reach | peak memory | longest history | `runs get` |")
	fmt.Println("|---|--:|--:|--:|--:|--:|--:|--:|")
	for _, b := range bigs() {
		if !strings.Contains(b.name, only) {
			continue
		}
		if err := measureBig(ctx, binary, dir, b); err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
	}
	return nil
}

// measureBig measures one shape on a host of its own, so that the peak memory belongs to that shape.
func measureBig(ctx context.Context, binary, dir string, b big) error {
	h, err := startHost(ctx, binary, dir)
	if err != nil {
		return err
	}
	defer h.stop()
	var theirs spent
	if b.against != nil {
		d, per, err := b.against(ctx, h)
		if err != nil {
			return fmt.Errorf("what it is compared with: %w", err)
		}
		theirs = d.per(per)
	}
	began := h.spent()
	id, err := h.run(ctx, b.definition(), b.copies)
	if err != nil {
		return err
	}
	ours := h.spent().since(began).per(b.per)
	get, err := h.get(ctx, id)
	if err != nil {
		return err
	}
	history, err := h.longestHistory(ctx)
	if err != nil {
		return err
	}
	right, ratio := "", ""
	if theirs.time > 0 {
		right = theirs.String() + b.unit
		ratio = fmt.Sprintf("%.2f (%.2f)", ours.time.Seconds()/theirs.time.Seconds(), ours.cpu.Seconds()/theirs.cpu.Seconds())
	}
	fmt.Printf("| %s | %s%s | %s | %s | %s | %d MiB | %d | %s |\n", b.name, ours, b.unit, right, ratio, b.reach, h.peak(), history, rounded(get))
	return nil
}

// spent holds elapsed time and processor time.
type spent struct{ time, cpu time.Duration }

func (s spent) since(o spent) spent { return spent{s.time - o.time, s.cpu - o.cpu} }
func (s spent) per(n int) spent     { return spent{s.time / time.Duration(n), s.cpu / time.Duration(n)} }
func (s spent) String() string      { return fmt.Sprintf("%s (%s)", rounded(s.time), rounded(s.cpu)) }

// spent returns the current time and the processor time used so far by the host and by its ended child processes.
func (h *host) spent() spent {
	now := spent{time: time.Duration(time.Now().UnixNano())}
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", h.process.Process.Pid)) // empty without /proc
	_, fields, _ := strings.Cut(string(text), ") ")
	for i, f := range strings.Fields(fields) {
		if ticks, err := strconv.Atoi(f); err == nil && i >= 11 && i <= 14 { // utime, stime, cutime, cstime in 1/100 s
			now.cpu += time.Duration(ticks) * 10 * time.Millisecond
		}
	}
	return now
}

func rounded(d time.Duration) string { return d.Round(10 * time.Microsecond).String() }

// startHost starts `switchyard dev` and waits for its addresses.
func startHost(ctx context.Context, binary, dir string) (*host, error) {
	h := &host{binary: binary, dir: dir}
	out, err := os.CreateTemp(dir, "dev-")
	if err != nil {
		return nil, err
	}
	defer out.Close()
	h.process = exec.CommandContext(ctx, binary, "dev", "--nodes", "3", "--max-parallel", fmt.Sprint(window),
		"--port", "0", "--gateway-port", "0", "--ui-port", "0", "--log-level", "warn", "--store", out.Name()+".store")
	h.process.Stdout, h.process.Stderr = out, out
	if err := h.process.Start(); err != nil {
		return nil, err
	}
	temporal := ""
	for h.gateway == "" || temporal == "" {
		text, err := os.ReadFile(out.Name())
		if err != nil {
			return nil, err
		}
		h.gateway, temporal = address(string(text), "Gateway"), address(string(text), "Temporal")
		if err := pause(ctx); err != nil {
			h.stop()
			return nil, err
		}
	}
	if h.conn, err = workers.Dial(ctx, workers.DialOptions{Address: temporal, Logger: slog.New(slog.DiscardHandler)}); err != nil {
		h.stop()
		return nil, err
	}
	return h, nil
}

// address returns the address in the line that begins with a word: "Gateway  http://127.0.0.1:7280".
func address(text, word string) string {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); strings.HasSuffix(line, "\n") && len(f) > 1 && f[0] == word {
			return f[1]
		}
	}
	return ""
}

func (h *host) stop() {
	if h.conn != nil {
		h.conn.Close()
	}
	_ = h.process.Process.Kill() // the process does not end by itself
	_ = h.process.Wait()
}

// command runs a command of the program against the host.
func (h *host) command(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, h.binary, args...)
	cmd.Env = append(os.Environ(), "SWITCHYARD_GATEWAY="+h.gateway)
	var words strings.Builder
	cmd.Stderr = &words
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, words.String())
	}
	return out, err
}

// run submits copies of a definition, waits until all have completed, and returns the ID of the last one.
func (h *host) run(ctx context.Context, definition string, copies int) (id string, err error) {
	file := filepath.Join(h.dir, "definition.json")
	if err := os.WriteFile(file, []byte(definition), 0o600); err != nil {
		return "", err
	}
	if copies == 1 {
		// as a user would, but without a line for each task
		out, err := h.command(ctx, "run", file, "-o", "json")
		if err != nil {
			return "", err
		}
		var run struct{ ID, State string }
		if err := json.Unmarshal(out, &run); err != nil || run.State != v1.RunCompleted {
			return "", fmt.Errorf("the run %s is %s, %w", run.ID, run.State, err)
		}
		return run.ID, nil
	}
	return h.submitMany(ctx, definition, copies)
}

// get measures how long the status of a run takes for a user.
func (h *host) get(ctx context.Context, id string) (time.Duration, error) {
	began := time.Now()
	_, err := h.command(ctx, "runs", "get", id)
	return time.Since(began), err
}

// longestHistory returns the number of events in the longest history on the host.
func (h *host) longestHistory(ctx context.Context) (longest int64, err error) {
	var token []byte
	for {
		page, err := h.conn.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Namespace: h.conn.Namespace, NextPageToken: token})
		if err != nil {
			return 0, err
		}
		for _, e := range page.GetExecutions() {
			longest = max(longest, e.GetHistoryLength())
		}
		if token = page.GetNextPageToken(); len(token) == 0 {
			return longest, nil
		}
	}
}

// peak returns the peak memory of the host so far, in MiB.
func (h *host) peak() (mib int) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", h.process.Process.Pid)) // 0 without /proc
	for line := range strings.Lines(string(text)) {
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &mib); err == nil {
			return mib >> 10
		}
	}
	return 0
}
