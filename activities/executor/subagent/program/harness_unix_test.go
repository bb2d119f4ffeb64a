//go:build unix

package program

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/executor/shell"
)

// phrases are shell functions that print the lines of a scripted program.
const phrases = `
init() { echo '{"type":"system","subtype":"init","session_id":"s-1","model":"scripted-1","tools":["Bash"]}'; }
say() { echo '{"type":"assistant","message":{"id":"'$1'","model":"scripted-1","content":[{"type":"text","text":"'"$2"'"}],"usage":{"input_tokens":10,"output_tokens":5,"cache_read_input_tokens":3}}}'; }
call() { echo '{"type":"assistant","message":{"id":"'$1'","content":[{"type":"tool_use","id":"'$2'","name":"Bash","input":{"command":"ls -l"}}],"usage":{"input_tokens":10,"output_tokens":5,"cache_read_input_tokens":3}}}'; }
answer() { echo '{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"'$1'","content":"'"$2"'","is_error":'$3'}]}}'; }
result() { echo '{"type":"result","subtype":"success","is_error":false,"result":"'"$1"'","session_id":"s-1","num_turns":2,"total_cost_usd":0.25,"usage":{"input_tokens":100,"output_tokens":50,"cache_creation_input_tokens":7}}'; }
forever() { while :; do sleep 0.05; done; }
`

// briefGrace is a grace period that is expected to pass.
const briefGrace = 200 * time.Millisecond

// outcome is the outcome of a scripted program.
type outcome struct {
	result   executor.Result
	report   Report
	err      error
	log      string
	notices  []string
	sessions []string
	spawns   int32
	workDir  string
}

// script is a scripted program and its differences from a plain attempt.
type script struct {
	text    string
	options Options
	env     map[string]string
	// grace is the grace period of the attempt, for programs that ignore SIGTERM; 0 means a minute.
	grace time.Duration
	// cancelOn is a text in the log at which the context is cancelled.
	cancelOn string
	lease    *executor.Lease
	// journal is the error that OnSession returns.
	journal error
	// log replaces the default log buffer.
	log interface{ Write([]byte) (int, error) }
}

var serial atomic.Int64

// lead runs a script as the program of an agent.
func lead(t *testing.T, s script) outcome {
	t.Helper()
	sh, err := shell.New(shell.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := sh.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var o outcome
	var log buffer
	dir := t.TempDir()
	o.workDir = filepath.Join(dir, "work")
	a := executor.Attempt{
		ID:   fmt.Sprintf("program-%d-%d/task/c1", os.Getpid(), serial.Add(1)),
		Dirs: executor.Dirs{Workspace: dir}, Env: s.env, Ending: executor.Ending{Grace: cmp.Or(s.grace, time.Minute), Lease: s.lease},
		Streams: executor.Streams{Stdout: &log, Stderr: &log},
		Reports: executor.Reports{Notify: func(line string) { o.notices = append(o.notices, line) }},
	}
	if s.log != nil {
		a.Stdout = s.log
	}
	if s.cancelOn != "" {
		log.onText, log.do = s.cancelOn, cancel
	}
	if s.options.Command == nil {
		s.options.Command = []string{"sh", "-c", phrases + s.text, "agent"}
	}
	if s.options.Prompt == "" {
		s.options.Prompt = "do it"
	}
	if s.options.Grace == 0 {
		s.options.Grace = time.Minute
	}
	s.options.OnSession = func(id string) error {
		o.sessions = append(o.sessions, id)
		return s.journal
	}
	o.result, o.report, o.err = Run(ctx, sh, a, s.options, func() { o.spawns++ })
	o.log = log.String()
	if s.cancelOn == "" && ctx.Err() != nil {
		t.Errorf("the program still ran after 5 minutes")
	}
	return o
}

// buffer is a log for concurrent writers. It calls do while it contains onText.
type buffer struct {
	mu     sync.Mutex
	data   bytes.Buffer
	onText string
	do     func()
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, err := b.data.Write(p)
	if b.onText != "" && strings.Contains(b.data.String(), b.onText) {
		b.do()
	}
	return n, err
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.String()
}
