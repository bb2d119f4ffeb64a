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

	"connectrpc.com/connect"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	library "switchyard/activities/environments"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
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

// environmentsAs returns a client of EnvironmentService with a token.
func (f *fixture) environmentsAs(t *testing.T, token string) switchyardv1connect.EnvironmentServiceClient {
	t.Helper()
	return switchyardv1connect.NewEnvironmentServiceClient(f.httpClient(t), f.server.URL(), connect.WithInterceptors(bearer(token)))
}

// capturer is a test node that captures environments.
type capturer struct {
	library *library.Library
	asked   chan *v1.CaptureRequest
	answer  chan error // nil if the archive is stored
}

// startCapturer starts a node that captures the named environments.
func startCapturer(t *testing.T, f *fixture, node string, environments ...string) *capturer {
	t.Helper()
	c := &capturer{library: library.New(f.config.Store), asked: make(chan *v1.CaptureRequest, 8), answer: make(chan error)}
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

func (c *capturer) capture(ctx context.Context, req *v1.CaptureRequest) (*v1.CaptureResponse, error) {
	c.asked <- req
	activity.RecordHeartbeat(ctx, &v1.CaptureProgress{Size: 7})
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
	return &v1.CaptureResponse{Environment: &v1.Environment{
		Kind: v1.EnvironmentImage, ImageId: "sha256:1", Archive: w.Archive(), Size: w.Size(), Digest: w.Digest(), Parts: int32(w.Parts()),
	}}, nil
}

const machinesDocument = `name: environment-source
tasks:
  vps: { type: vps, spec: { image: ubuntu } }
  build: { type: shell, spec: { command: 'true' } }
`

// submitMachine starts a scripted run of a machine.
func submitMachine(t *testing.T, client switchyardv1connect.RunServiceClient) string {
	t.Helper()
	res, err := client.SubmitRun(t.Context(), connect.NewRequest(&v1.SubmitRunRequest{Source: &v1.SubmitRunRequest_Document{Document: machinesDocument}}))
	if err != nil {
		t.Fatal(err)
	}
	terminate(t, res.Msg.GetId())
	return res.Msg.GetId()
}

// startUser starts a scripted run whose definition uses an environment.
func startUser(t *testing.T, environment string) string {
	t.Helper()
	def, err := definition.Parse("user.yaml", []byte("name: environment-user\ntasks: { use: { type: container, spec: { environment: "+environment+", command: [ls] } } }\n"))
	if err != nil {
		t.Fatal(err)
	}
	attributes := visibility.Started(def.GetName(), v1.TriggerSubmit, time.Now())
	attributes.Describe(def)
	id := names.NewRunID(def.GetName())
	if _, err := temporalClient.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: id, TaskQueue: names.ControlQueue, TypedSearchAttributes: attributes.Typed(),
	}, names.RunWorkflow, &v1.RunInput{Definition: def}); err != nil {
		t.Fatal(err)
	}
	terminate(t, id)
	return id
}

// TestEnvironmentLifecycleOverREST covers the lifecycle of an environment: created, replaced, in use, deleted.
func TestEnvironmentLifecycleOverREST(t *testing.T) {
	t.Parallel()
	f := start(t)
	const node, name = "environment-node", "rest-tools"
	c := startCapturer(t, f, node, name)
	id := submitMachine(t, f.client)
	startAttempt(t, id, node, "vps", 3)
	startAttempt(t, id, node, "build", 4)

	create := func(body string) httpAnswer {
		return f.rest(t, "POST", "/v1/environments", body, "Content-Type", jsonHeader)
	}
	got := create(`{"name": "` + name + `", "run": "` + id + `"}`)
	if got.status != http.StatusCreated || got.header.Get("Location") != "/v1/environments/"+name {
		t.Fatalf("%d %s", got.status, got.text)
	}
	asked := <-c.asked
	if asked.GetEnvironment().GetRun() != id || asked.GetEnvironment().GetTask() != "vps" || asked.GetClaim() != 3 || asked.GetChain() == "" || asked.GetType() != v1.TypeVPS {
		t.Errorf("asked for %v", asked)
	}
	path := "/v1/environments/" + name
	eventually(t, "it says how much is stored", func() bool {
		one := f.rest(t, "GET", path, "")
		return one.status == http.StatusOK && one.value["state"] == "creating" && one.value["version"] == 1.0 && one.value["size"] == "7"
	})
	eventually(t, "it is listed", func() bool {
		items, _ := f.rest(t, "GET", "/v1/environments", "").value["items"].([]any)
		return slices.ContainsFunc(items, func(item any) bool { return item.(map[string]any)["name"] == name })
	})
	if again := create(`{"name": "` + name + `", "run": "` + id + `"}`); again.status != http.StatusConflict || !strings.Contains(again.message(), "is being created") {
		t.Errorf("twice at once: %d %s", again.status, again.text)
	}
	c.answer <- nil
	eventually(t, "it is ready", func() bool { return f.rest(t, "GET", path, "").value["state"] == "ready" })
	one := f.rest(t, "GET", path, "")
	for field, want := range map[string]any{"version": 1.0, "kind": "image", "run": id, "task": "vps", "node": node, "size": "11", "parts": 1.0, "imageId": "sha256:1"} {
		if one.value[field] != want {
			t.Errorf("%s is %v, want %v", field, one.value[field], want)
		}
	}

	eventually(t, "its creation has ended, and it exists", func() bool {
		again := create(`{"name": "` + name + `", "run": "` + id + `"}`)
		return again.status == http.StatusConflict && strings.Contains(again.message(), "exists (version 1)")
	})
	replace := `{"name": "` + name + `", "run": "` + id + `", "task": "vps", "replace": true}`
	if got := create(replace); got.status != http.StatusCreated || got.value["environment"].(map[string]any)["version"] != 2.0 {
		t.Fatalf("replaced: %d %s", got.status, got.text)
	}
	<-c.asked
	if one := f.rest(t, "GET", path, ""); one.value["state"] != "ready" || one.value["version"] != 1.0 || one.value["creation"].(map[string]any)["state"] != "creating" {
		t.Errorf("while it is replaced: %s", one.text)
	}
	c.answer <- temporal.NewNonRetryableApplicationError("the machine has just ended", "Refused", nil)
	eventually(t, "the replacement has failed", func() bool {
		creation, _ := f.rest(t, "GET", path, "").value["creation"].(map[string]any)
		return creation["state"] == "failed" && creation["error"] == "the machine has just ended"
	})
	eventually(t, "the failure is listed", func() bool {
		return strings.Contains(f.rest(t, "GET", "/v1/environments", "").text, "the machine has just ended")
	})
	if got := create(replace); got.status != http.StatusCreated {
		t.Fatalf("replaced again: %d %s", got.status, got.text)
	}
	<-c.asked
	if ended := f.rest(t, "DELETE", path, ""); ended.status != http.StatusOK {
		t.Errorf("a creation is ended: %d %s", ended.status, ended.text)
	}
	eventually(t, "version 1 stays", func() bool {
		one := f.rest(t, "GET", path, "")
		return one.status == http.StatusOK && one.value["version"] == 1.0 && one.value["creation"] == nil
	})

	user := startUser(t, name)
	eventually(t, "its user is listed", func() bool {
		return strings.Contains(f.rest(t, "GET", "/v1/runs?pageSize=1000", "").text, `"`+user+`"`)
	})
	if used := f.rest(t, "DELETE", path, ""); used.status != http.StatusConflict || !strings.Contains(used.message(), "open run "+user+" names it") {
		t.Errorf("it is in use: %d %s", used.status, used.text)
	}
	if gone := f.rest(t, "DELETE", path+"?force=true", ""); gone.status != http.StatusOK {
		t.Errorf("by force: %d %s", gone.status, gone.text)
	}
	if gone := f.rest(t, "GET", path, ""); gone.status != http.StatusNotFound {
		t.Errorf("it is there: %d %s", gone.status, gone.text)
	}
	if got := create(`{"name": "` + name + `", "run": "` + id + `"}`); got.status != http.StatusCreated {
		t.Fatalf("%d %s", got.status, got.text)
	}
	<-c.asked
	c.answer <- temporal.NewNonRetryableApplicationError("no room", "Refused", nil)
	eventually(t, "it has failed", func() bool { return f.rest(t, "GET", path, "").value["state"] == "failed" })
	if forgotten := f.rest(t, "DELETE", path, ""); forgotten.status != http.StatusOK || f.rest(t, "GET", path, "").status != http.StatusNotFound {
		t.Errorf("a failed creation is forgotten: %d %s", forgotten.status, forgotten.text)
	}
	if bad := create(`{"name": "` + name + `", "run": "` + id + `", "task": "build"}`); bad.status != http.StatusConflict || !strings.Contains(bad.message(), "is of type shell") {
		t.Errorf("of a task without files of its own: %d %s", bad.status, bad.text)
	}
}

// TestEnvironmentIsForOperators checks that callers who may not enter a machine cannot copy its files either.
func TestEnvironmentIsForOperators(t *testing.T) {
	t.Parallel()
	f := startLocked(t, "mem://")
	user, _ := f.token(t, "bob", v1.RoleUser)
	operator, _ := f.token(t, "ann", v1.RoleOperator)
	const node, name = "environment-locked-node", "locked-tools"
	c := startCapturer(t, f, node, name)
	id := submitMachine(t, f.dial(t, connect.WithInterceptors(bearer(user))))
	startAttempt(t, id, node, "vps", 3)
	req := &v1.CreateEnvironmentRequest{Name: name, Run: id}
	if _, err := f.environmentsAs(t, user).CreateEnvironment(t.Context(), connect.NewRequest(req)); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("a user: %v", err)
	}
	if _, err := f.environmentsAs(t, operator).CreateEnvironment(t.Context(), connect.NewRequest(req)); err != nil {
		t.Fatal(err)
	}
	if asked := <-c.asked; asked.GetEnvironment().GetCreatedBy() != "ann" {
		t.Errorf("asked for %v", asked)
	}
	c.answer <- nil
	eventually(t, "users see it", func() bool {
		res, err := f.environmentsAs(t, user).GetEnvironment(t.Context(), connect.NewRequest(&v1.GetEnvironmentRequest{Name: name}))
		return err == nil && res.Msg.GetEnvironment().GetState() == v1.EnvironmentReady
	})
	if _, err := f.environmentsAs(t, user).DeleteEnvironment(t.Context(), connect.NewRequest(&v1.DeleteEnvironmentRequest{Name: name})); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("a user deletes: %v", err)
	}
}
