package subagent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor"
	"switchyard/activities/executor/shell"
	"switchyard/activities/executor/subagent/model"
	"switchyard/dev/scriptedmodel"
	"switchyard/dev/testneeds"
	v1 "switchyard/proto/switchyard/v1"
)

// shells is the shell executor of all tests.
var shells unboxed

// unboxed runs commands of agents without a sandbox.
type unboxed struct{ *shell.Executor }

func (unboxed) CanSandbox() error { return nil }

func (u unboxed) Batch(id string, lease *executor.Lease) (executor.Batch, error) {
	row, err := u.Executor.Batch(id, lease)
	return unboxedBatch{row}, err
}

type unboxedBatch struct{ executor.Batch }

func (b unboxedBatch) Run(ctx context.Context, a executor.Attempt, spawned func()) (executor.Result, error) {
	delete(a.Spec.Fields, "sandbox")
	delete(a.Spec.Fields, "network")
	return b.Batch.Run(ctx, a, spawned)
}

func TestMain(m *testing.M) {
	shell.ServeIfAsked()
	var err error
	if shells.Executor, err = shell.New(shell.Options{}); err != nil {
		panic(err)
	}
	testneeds.NoLeaks(closing{m})
}

// closing closes the shell executor after the tests.
type closing struct{ m *testing.M }

func (c closing) Run() int {
	code := c.m.Run()
	if err := shells.Close(); err != nil {
		panic(err)
	}
	return code
}

// memory is a journal that its attempts share. After failAfter entries it rejects further ones, as if the worker were
// killed.
type memory struct {
	mu        sync.Mutex
	entries   [][]byte
	archive   []byte
	failAfter int // 0 means that it does not fail
}

var errKilled = errors.New("the worker is killed")

func (m *memory) Entries(context.Context) iter.Seq2[[]byte, error] {
	m.mu.Lock()
	entries := slices.Clone(m.entries)
	m.mu.Unlock()
	return func(yield func([]byte, error) bool) {
		for _, entry := range entries {
			if !yield(entry, nil) {
				return
			}
		}
	}
}

func (m *memory) Append(_ context.Context, entry []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failAfter > 0 && len(m.entries) >= m.failAfter {
		return errKilled
	}
	m.entries = append(m.entries, entry)
	return nil
}

func (m *memory) Archive(context.Context) ([]byte, error) { return m.archive, nil }

func (m *memory) SaveArchive(_ context.Context, data []byte) error {
	m.archive = data
	return nil
}

// trial is an agent and its provider.
type trial struct {
	t        *testing.T
	executor *Executor
	provider *scriptedmodel.Server
	url      string
	journal  *memory
	spec     map[string]any
	env      map[string]string
	mask     func(string) string

	stdout, stderr bytes.Buffer
	notices        []string
}

// attempts numbers attempts, because the processes of an attempt are found by its id on the whole machine.
var attempts atomic.Int64

// newTrial returns a trial whose spec has a prompt, a model and the address of the provider.
func newTrial(t *testing.T, rules ...scriptedmodel.Rule) *trial {
	t.Helper()
	provider := scriptedmodel.New(scriptedmodel.Script{Key: "secret-key", Rules: rules})
	server := httptest.NewServer(provider)
	t.Cleanup(server.Close)
	prices, err := model.LoadPrices("")
	if err != nil {
		t.Fatal(err)
	}
	e := New(Options{Tools: []string{v1.AgentToolShell, v1.AgentToolFiles, v1.AgentToolMCP, v1.AgentToolFleet}, Prices: prices, HTTPClient: server.Client()})
	e.firstPause = time.Millisecond
	return &trial{
		t: t, executor: e, provider: provider, url: server.URL, journal: &memory{}, env: map[string]string{"ANTHROPIC_API_KEY": "secret-key"},
		spec: map[string]any{"prompt": "do it", "model": "claude-sonnet-5", "baseUrl": server.URL},
	}
}

// run runs an attempt in a workspace of its own and returns its output.
func (c *trial) run(ctx context.Context) (executor.Result, map[string]any, error) {
	c.t.Helper()
	spec, err := structpb.NewStruct(c.spec)
	if err != nil {
		c.t.Fatal(err)
	}
	dir := c.t.TempDir()
	temp := filepath.Join(dir, "tmp")
	if err := os.Mkdir(temp, 0o700); err != nil {
		c.t.Fatal(err)
	}
	env := map[string]string{"SWITCHYARD_OUTPUT": filepath.Join(dir, "output")}
	for k, v := range c.env {
		env[k] = v
	}
	result, err := c.executor.Run(ctx, executor.Attempt{
		ID: fmt.Sprintf("run@%d/agent/c%d", os.Getpid(), attempts.Add(1)), Identity: executor.Identity{Run: "run", Task: "agent", Node: "n1", Index: -1}, Dirs: executor.Dirs{Workspace: dir, Temp: temp, Base: dir},
		Spec: spec, Env: env, Streams: executor.Streams{Stdout: &c.stdout, Stderr: &c.stderr}, Journal: c.journal, Secrets: executor.Secrets{Mask: c.mask}, Ending: executor.Ending{Grace: time.Second},
		Reports: executor.Reports{Notify: func(line string) { c.notices = append(c.notices, line) }},
	}, func() {})
	text, readErr := os.ReadFile(env["SWITCHYARD_OUTPUT"])
	var output map[string]any
	if readErr == nil {
		if err := json.Unmarshal(text, &output); err != nil {
			c.t.Fatal(err)
		}
	}
	return result, output, err
}

// must runs an attempt that has to complete.
func (c *trial) must() (executor.Result, map[string]any) {
	c.t.Helper()
	result, output, err := c.run(c.t.Context())
	if err != nil || result.Failure != nil || result.Stopped || result.ExitCode != 0 {
		c.t.Fatalf("result %+v, error %v, notices %q", result, err, c.notices)
	}
	return result, output
}

// mustFail runs an attempt that has to fail for a reason.
func (c *trial) mustFail(reason, text string) executor.Result {
	c.t.Helper()
	result, _, err := c.run(c.t.Context())
	if err != nil || result.Failure == nil || result.Failure.Reason != reason || !strings.Contains(result.Failure.Err.Error(), text) {
		c.t.Fatalf("result %+v, failure %+v, error %v", result, result.Failure, err)
	}
	return result
}

// requests returns the number of requests to the provider. The provider records a request when its handler ends, which
// may be after the agent has ended.
func (c *trial) requests() int {
	for c.provider.Open() > 0 {
		time.Sleep(time.Millisecond)
	}
	return len(c.provider.Requests())
}

func calls(tool string, arguments string) scriptedmodel.Reply {
	return scriptedmodel.Reply{ToolCalls: []scriptedmodel.ToolCall{{Name: tool, Arguments: scriptedmodel.Arguments(arguments)}}}
}

func says(text string) scriptedmodel.Reply { return scriptedmodel.Reply{Text: text} }

func turns(n int) scriptedmodel.When { return scriptedmodel.When{Turns: &n} }

// scriptedModelIsNotAsked is the rule for trials that make no request to the model.
var scriptedModelIsNotAsked = scriptedmodel.Rule{Reply: says("never")}
