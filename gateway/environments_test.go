package gateway

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	library "switchyard/activities/environments"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
	"switchyard/workflows/visibility"
)

// libraries maps environment names to the libraries of the tests' gateways. Each test uses its own names.
var libraries sync.Map

func keepEnvironment(ctx context.Context, e *v1.Environment) (*v1.Environment, error) {
	l, _ := libraries.Load(e.GetName())
	return l.(*library.Library).Keep(ctx, e)
}

func discardEnvironment(ctx context.Context, e *v1.Environment) error {
	l, _ := libraries.Load(e.GetName())
	return l.(*library.Library).DeleteArchive(ctx, e.GetArchive())
}

// capturer is a test node that captures environments.
type capturer struct {
	library *library.Library
	asked   chan *historyv1.CaptureRequest
	answer  chan error // nil if the archive is stored
}

// startCapturer starts a node that captures the named environments.
func startCapturer(t *testing.T, f *fixture, node string, environments ...string) *capturer {
	t.Helper()
	c := &capturer{library: library.New(f.config.Store), asked: make(chan *historyv1.CaptureRequest, 8), answer: make(chan error)}
	for _, name := range environments {
		libraries.Store(name, c.library)
	}
	w := worker.New(temporalClient, names.NodeQueue(node, names.EnvironmentLane), worker.Options{})
	w.RegisterActivityWithOptions(c.capture, activity.RegisterOptions{Name: names.CaptureActivity})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return c
}

func (c *capturer) capture(ctx context.Context, req *historyv1.CaptureRequest) (*historyv1.CaptureResponse, error) {
	c.asked <- req
	activity.RecordHeartbeat(ctx, &historyv1.CaptureProgress{Size: 7})
	select {
	case err := <-c.answer:
		if err != nil {
			return nil, err
		}
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-activity.GetWorkerStopChannel(ctx):
		return nil, context.Canceled
	}
	w := c.library.NewWriter(ctx, req.GetEnvironment().GetArchive())
	if _, err := fmt.Fprint(w, "the archive"); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return &historyv1.CaptureResponse{Environment: &v1.Environment{
		Kind: v1.EnvironmentImage, ImageId: "sha256:1", Archive: w.Archive(), Size: w.Size(), Digest: w.Digest(), Parts: int32(w.Parts()),
	}}, nil
}

const machinesDocument = `name: environment-source
tasks:
  vps: { type: vps, spec: { image: ubuntu } }
  build: { type: shell, spec: { command: 'true' } }
`

// TestEnvironmentLifecycleOverREST covers the lifecycle of an environment: created, replaced, in use, deleted.
func TestEnvironmentLifecycleOverREST(t *testing.T) {
	t.Parallel()
	f := start(t)
	const node, name = "environment-node", "rest-tools"
	c := startCapturer(t, f, node, name)
	id := f.submitDocument(t, machinesDocument)
	startAttempt(t, id, node, "vps", 3)
	startAttempt(t, id, node, "build", 4)

	create := func(more string) httpAnswer {
		return f.rest(t, "POST", "/v1/environments", `{"name": "`+name+`", "run": "`+id+`"`+more+`}`, "Content-Type", jsonHeader)
	}
	path := "/v1/environments/" + name
	get := func() map[string]any { return f.rest(t, "GET", path, "").value }
	if got := create(""); got.status != http.StatusCreated || got.header.Get("Location") != path {
		t.Fatalf("%d %s", got.status, got.text)
	}
	asked := <-c.asked
	if asked.GetEnvironment().GetRun() != id || asked.GetEnvironment().GetTask() != "vps" || asked.GetClaim() != 3 || asked.GetChain() == "" || asked.GetType() != v1.TypeVPS {
		t.Errorf("asked for %v", asked)
	}
	eventually(t, "it says how much is stored", func() bool {
		one := get()
		return one["state"] == "creating" && one["version"] == 1.0 && one["size"] == "7"
	})
	eventually(t, "it is listed", func() bool {
		items, _ := f.rest(t, "GET", "/v1/environments", "").value["items"].([]any)
		return slices.ContainsFunc(items, func(item any) bool { return item.(map[string]any)["name"] == name })
	})
	c.answer <- nil
	eventually(t, "it is ready", func() bool { return get()["state"] == "ready" })
	one := get()
	for field, want := range map[string]any{"version": 1.0, "kind": "image", "run": id, "task": "vps", "node": node, "size": "11", "parts": 1.0, "imageId": "sha256:1"} {
		if one[field] != want {
			t.Errorf("%s is %v, want %v", field, one[field], want)
		}
	}
	eventually(t, "its creation has ended, and it exists", func() bool {
		again := create("")
		return again.status == http.StatusConflict && strings.Contains(again.message(), "exists (version 1)")
	})

	// A replacement that fails, and one that is ended, leave version 1.
	if got := create(`, "replace": true`); got.status != http.StatusCreated {
		t.Fatalf("replaced: %d %s", got.status, got.text)
	}
	<-c.asked
	if one := get(); one["state"] != "ready" || one["version"] != 1.0 || one["creation"].(map[string]any)["state"] != "creating" {
		t.Errorf("while it is replaced: %v", one)
	}
	c.answer <- temporal.NewNonRetryableApplicationError("the machine has just ended", "Refused", nil)
	eventually(t, "the replacement has failed", func() bool {
		creation, _ := get()["creation"].(map[string]any)
		return creation["state"] == "failed" && creation["error"] == "the machine has just ended"
	})
	if got := create(`, "replace": true`); got.status != http.StatusCreated {
		t.Fatalf("replaced again: %d %s", got.status, got.text)
	}
	<-c.asked
	if ended := f.rest(t, "DELETE", path, ""); ended.status != http.StatusOK {
		t.Errorf("a creation is ended: %d %s", ended.status, ended.text)
	}
	eventually(t, "version 1 stays", func() bool {
		one := get()
		return one["version"] == 1.0 && one["creation"] == nil
	})

	def, err := definition.Parse("user.yaml", []byte("name: environment-user\ntasks: { use: { type: container, spec: { environment: "+name+", command: [ls] } } }\n"))
	if err != nil {
		t.Fatal(err)
	}
	attributes, user := visibility.Started(def.GetName(), v1.TriggerSubmit, time.Now()), names.NewRunID(def.GetName())
	attributes.Describe(def)
	execute(t, client.StartWorkflowOptions{ID: user, TypedSearchAttributes: attributes.Typed()}, names.RunWorkflow, &historyv1.RunInput{Definition: def})
	eventually(t, "its user is listed", func() bool {
		ids, _ := f.list(t, &v1.ListRunsRequest{Name: def.GetName()})
		return slices.Contains(ids, user)
	})
	if used := f.rest(t, "DELETE", path, ""); used.status != http.StatusConflict || !strings.Contains(used.message(), "open run "+user+" names it") {
		t.Errorf("it is in use: %d %s", used.status, used.text)
	}
	if gone := f.rest(t, "DELETE", path+"?force=true", ""); gone.status != http.StatusOK || f.rest(t, "GET", path, "").status != http.StatusNotFound {
		t.Errorf("by force: %d %s", gone.status, gone.text)
	}
	if got := create(""); got.status != http.StatusCreated {
		t.Fatalf("%d %s", got.status, got.text)
	}
	<-c.asked
	c.answer <- temporal.NewNonRetryableApplicationError("no room", "Refused", nil)
	eventually(t, "it has failed", func() bool { return get()["state"] == "failed" })
	if forgotten := f.rest(t, "DELETE", path, ""); forgotten.status != http.StatusOK || f.rest(t, "GET", path, "").status != http.StatusNotFound {
		t.Errorf("a failed creation is forgotten: %d %s", forgotten.status, forgotten.text)
	}
}
