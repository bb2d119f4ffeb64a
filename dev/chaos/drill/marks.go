package drill

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// mark is a line that an attempt wrote; see task.sh.
type mark struct {
	at        time.Time
	what      string
	run, task string
	attempt   int
	row       string // claim as the process sees it, such as "t/c1"; for an instance in a batch, that of the batch
	claim     int    // number of the claim
	node      string
	pid       int
	ticks     int // completed ticks
}

// marks returns the marks of a task's attempts, in the order in which they were written.
func (y *Cluster) marks(run, task string) ([]mark, error) {
	text, err := os.ReadFile(filepath.Join(y.Dir, "marks", run+"."+task))
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var marks []mark
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(line, "\n") {
			break // an incomplete line, still being written
		}
		m, err := parseMark(line)
		if err != nil {
			return nil, fmt.Errorf("mark of %s/%s: %w", run, task, err)
		}
		marks = append(marks, m)
	}
	return marks, nil
}

func parseMark(line string) (mark, error) {
	f := strings.Fields(line)
	if len(f) != 9 {
		return mark{}, fmt.Errorf("%q is none", line)
	}
	_, claim, _ := strings.Cut(f[5], "/c")
	uptime, err := time.ParseDuration(f[0] + "s")
	if err != nil {
		return mark{}, fmt.Errorf("%q: %w", line, err)
	}
	var numbers [4]int
	for i, number := range []string{f[4], claim, f[7], f[8]} {
		if numbers[i], err = strconv.Atoi(number); err != nil {
			return mark{}, fmt.Errorf("%q: %w", line, err)
		}
	}
	return mark{
		at: booted().Add(uptime), what: f[1], run: f[2], task: f[3],
		attempt: numbers[0], row: f[5], claim: numbers[1], node: f[6], pid: numbers[2], ticks: numbers[3],
	}, nil
}

// booted returns when this machine was started.
var booted = sync.OnceValue(func() time.Time {
	var uptime unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &uptime) // the clock exists
	return time.Now().Add(-time.Duration(uptime.Nano()))
})

// execution is what the marks show about one claim of a task or an instance.
type execution struct {
	claim, attempt int
	node           string
	start          time.Time
	lastSign       time.Time // newest mark: the execution was alive until then
	term           time.Time // when SIGTERM arrived, or zero
	end            time.Time // when it completed its work, or zero
	failed         bool      // as the scenario intended
	overlaps       int       // number of processes of older claims that were alive at its start
}

// executions returns the started claims of a task, ordered by start.
func (y *Cluster) executions(run, task string) ([]execution, error) {
	marks, err := y.marks(run, task)
	if err != nil {
		return nil, err
	}
	var found []*execution
	byRow := map[string]*execution{}
	for _, m := range marks {
		e := byRow[m.row]
		if e == nil {
			e = &execution{claim: m.claim, attempt: m.attempt, node: m.node, start: m.at}
			byRow[m.row] = e
			found = append(found, e)
		}
		e.lastSign = m.at
		switch m.what {
		case "start":
			e.start = m.at
		case "term":
			e.term = m.at
		case "fail":
			e.failed = true
		case "end":
			e.end = m.at
		case "overlap":
			e.overlaps++
		}
	}
	executions := make([]execution, len(found))
	for i, e := range found {
		executions[i] = *e
	}
	return executions, nil
}

// started counts the tasks of a run whose newest execution is on a node; "" means any node.
func (y *Cluster) started(r string, tasks []string, node string) (n int, err error) {
	for _, task := range tasks {
		executions, err := y.executions(r, task)
		if err != nil {
			return 0, err
		}
		if len(executions) > 0 && (node == "" || executions[len(executions)-1].node == node) {
			n++
		}
	}
	return n, nil
}
