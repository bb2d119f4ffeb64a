//go:build unix

package workers_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"switchyard/activities/executor"
	"switchyard/activities/executor/relay"
	"switchyard/activities/executor/relay/session"
	"switchyard/activities/executor/shell"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers"
	"switchyard/workers/workertest"
)

// answering is an agent that answers each message.
const answering = `while read -r line; do
	echo '{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"It is good."}],"usage":{"input_tokens":3,"output_tokens":2}}}'
	echo '{"type":"result","subtype":"success","result":"It is good."}'
done`

// attachSession keeps an agent alive in a folder of sessions until the test ends or the caller calls detach.
func attachSession(t *testing.T, folder, name string) (detach func()) {
	t.Helper()
	sh, err := shell.New(shell.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := session.Attach(ctx, session.AttachOptions{
			Shell: sh, Dir: folder, Name: name, Command: []string{"sh", "-c", answering}, Ready: func(string) { close(ready) },
		})
		ended <- err
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("attach: %v", err)
		}
		if err := sh.Close(); err != nil {
			t.Error(err)
		}
	})
	select {
	case <-ready:
	case <-time.After(workertest.Limit):
		t.Fatal("the session cannot be reached")
	}
	return cancel
}

// relaying creates a folder of sessions and returns a change that makes a node run messages to them.
func relaying(t *testing.T, c *workertest.Nodes, short string) (folder string, change func(*workers.NodeConfig)) {
	t.Helper()
	scratch := filepath.Join(t.TempDir(), short)
	if err := os.Mkdir(scratch, 0o700); err != nil {
		t.Fatal(err)
	}
	folder, err := session.Folder(scratch)
	if err != nil {
		t.Fatal(err)
	}
	return folder, func(cfg *workers.NodeConfig) {
		cfg.Executors = []executor.Executor{c.Fake, relay.New(folder)}
		cfg.Sessions = func(ctx context.Context) []string { return session.List(ctx, folder) }
	}
}

func TestARelayRunsOnTheNodeOfItsSession(t *testing.T) {
	t.Parallel()
	c := workertest.Own(t, workers.ControlConfig{}).Nodes(t, nil) // the shared cluster is always expecting nodes of other tests
	there, hasThere := relaying(t, c, "there")
	other, hasOther := relaying(t, c, "other")
	attachSession(t, other, "writer")
	c.Start("other", hasOther)
	c.Start("there", hasThere)
	const document = `{name: relayed, tasks: {
		first: {type: shell, spec: {command: x}},
		ask: {type: claude_relay, dependsOn: [first], spec: {targetSessionId: reviewer, prompt: "Is it good?", fullContext: true, awaitResponse: true}},
		tell: {type: claude_relay, dependsOn: [ask], spec: {targetSessionId: reviewer, prompt: "Thanks."}}}}`

	// The leader knows the session of the other node.
	workertest.CheckRun(t, c.Do(`{name: relayed, tasks: {ask: {type: claude_relay, spec: {targetSessionId: writer, prompt: "Is it good?"}}}}`), "completed", nil)
	in := c.Input(document)
	in.Options.PlacementTimeout = durationpb.New(200 * time.Millisecond)
	run := c.Submit(in).Wait()
	workertest.CheckRun(t, run, "failed", map[string]string{"ask": "failed no_session"})
	if text := run.Tasks["ask"].GetError(); text != "no node has session reviewer; available: writer (on "+c.Name("other")+")" {
		t.Errorf("error %q", text)
	}

	h := c.Submit(c.Input(document))
	h.AwaitTask("ask", func(x *v1.Task) bool { return strings.Contains(x.GetError(), "no node has session reviewer") })
	// The next heartbeat of the node reports the session.
	attachSession(t, there, "reviewer")
	run = h.Wait()
	workertest.CheckRun(t, run, "completed", nil)
	for _, name := range []string{"ask", "tell"} {
		if got := run.Tasks[name].GetNode(); got != c.Name("there") {
			t.Errorf("task %s ran on %s", name, got)
		}
	}
	if text := run.Tasks["ask"].GetResult().GetOutput().GetFields()["text"].GetStringValue(); text != "It is good." {
		t.Errorf("output %v", run.Tasks["ask"].GetResult())
	}
}
