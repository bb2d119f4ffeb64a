package gateway

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// post sends a JSON message to a call over Connect, and returns the status and body of the response.
func (f *fixture) post(t *testing.T, token string, call protoreflect.MethodDescriptor, message string) (status int, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	path, kind := "/"+string(call.Parent().FullName())+"/"+string(call.Name()), "application/json"
	if call.IsStreamingServer() {
		kind = "application/connect+json"
		message = string([]byte{0, 0, 0, byte(len(message) >> 8), byte(len(message))}) + message
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.server.URL()+path, strings.NewReader(message))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", kind)
	req.Header.Set("Connect-Protocol-Version", "1")
	req.Header.Set("Authorization", "Bearer "+token)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	res, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if call.IsStreamingServer() {
		head := make([]byte, 5)
		if _, err := io.ReadFull(res.Body, head); err != nil {
			t.Fatal(err)
		}
		body := make([]byte, int(head[3])<<8|int(head[4])|int(head[2])<<16)
		if _, err := io.ReadFull(res.Body, body); err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(body)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

// namesRun returns the field of a request that names a run, or nil.
func namesRun(call protoreflect.MethodDescriptor) protoreflect.FieldDescriptor {
	fields := call.Input().Fields()
	if run := fields.ByName("run"); run != nil {
		return run
	}
	if name := call.Parent().Name(); name == "RunService" || name == "VpsService" {
		return fields.ByName("id")
	}
	return nil
}

// encodedDetail matches the binary form of an error detail; "debug" has the readable form.
var encodedDetail = regexp.MustCompile(`"value":"[^"]*",`)

// TestRunOfAnotherOwnerIsNotFound sends each call that names a run with a run of another owner. The response equals that for a
// run that does not exist.
func TestRunOfAnotherOwnerIsNotFound(t *testing.T) {
	t.Parallel()
	f := startLocked(t, t.TempDir())
	ann, _ := f.token(t, "ann", v1.RoleUser)
	bob, _ := f.token(t, "bob", v1.RoleUser)
	boss, _ := f.token(t, "boss", v1.RoleOperator)
	f.client = f.dial(t, connect.WithInterceptors(bearer(ann)))
	id := f.submit(t, "scoped")
	missing := "scoped-00000000"
	tried := 0
	for _, service := range v1.Services() {
		for i := range service.Methods().Len() {
			call := service.Methods().Get(i)
			field := namesRun(call)
			if field == nil || !v1.Role_ROLE_USER.Includes(v1.RulesOf(call).GetRole()) {
				continue // users already lack the role
			}
			tried++
			message := func(run string) string {
				task := ""
				if call.Input().Fields().ByName("task") != nil {
					task = `,"task":"build"`
				}
				return fmt.Sprintf(`{"%s":"%s"%s}`, field.JSONName(), run, task)
			}
			_, unknown := f.post(t, bob, call, message(missing))
			unknown = encodedDetail.ReplaceAllString(unknown, "")
			_, refused := f.post(t, bob, call, message(id))
			refused = encodedDetail.ReplaceAllString(refused, "")
			if want := strings.ReplaceAll(unknown, missing, id); refused != want || !strings.Contains(refused, `"not_found"`) {
				t.Errorf("%s: %s, and of a run that does not exist: %s", call.Name(), refused, want)
			}
			if v1.RulesOf(call).GetEffect() != v1.Effect_EFFECT_READ {
				continue // its effect is tested elsewhere
			}
			for who, token := range map[string]string{"its owner": ann, "an operator": boss} {
				if _, text := f.post(t, token, call, message(id)); strings.Contains(text, "there is no run") || strings.Contains(text, "unauthenticated") || strings.Contains(text, "permission_denied") {
					t.Errorf("%s as %s: %s", call.Name(), who, text)
				}
			}
		}
	}
	if tried < 25 {
		t.Errorf("only %d calls name a run", tried)
	}
	end(t, id, "completed")
}

// TestListsShowOwnRuns lists, searches and follows runs as two users and an operator.
func TestListsShowOwnRuns(t *testing.T) {
	t.Parallel()
	f := startLocked(t, t.TempDir())
	clients, tokens, ids := map[string]switchyardv1connect.RunServiceClient{}, map[string]string{}, map[string]string{}
	for name, role := range map[string]string{"carol": v1.RoleUser, "dave": v1.RoleUser, "chief": v1.RoleOperator} {
		tokens[name], _ = f.token(t, name, role)
		clients[name] = f.dial(t, connect.WithInterceptors(bearer(tokens[name])))
	}
	began := time.Now()
	follower, _ := f.openStream(t, "/v1/events", "Authorization", "Bearer "+tokens["dave"])
	for _, name := range []string{"dave", "carol"} {
		res, err := clients[name].SubmitRun(t.Context(), connect.NewRequest(&v1.SubmitRunRequest{
			Source: &v1.SubmitRunRequest_Document{Document: document("owned", "build")}, IdempotencyKey: "nightly",
		}))
		if err != nil || res.Msg.GetExisted() {
			t.Fatalf("%s, with a key that another has used: %v, %v", name, res, err)
		}
		ids[name] = res.Msg.GetId()
		t.Cleanup(func() {
			// The call fails if the run has already ended.
			_ = temporalClient.TerminateWorkflow(context.Background(), ids[name], "", "the test is over")
		})
	}
	for _, name := range []string{"carol", "dave"} {
		signal(t, ids[name], eventsSignal, &v1.EventsResponse{Events: []*v1.Event{happening(time.Now(), 0, "", v1.EventSubmitted), happening(time.Now(), 1, "build", v1.EventQueued)}})
	}
	listed := func(name string, req *v1.ListRunsRequest) map[string]bool {
		t.Helper()
		req.Name = "owned"
		res, err := clients[name].ListRuns(t.Context(), connect.NewRequest(req))
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for _, run := range res.Msg.GetItems() {
			found[run.GetId()] = true
		}
		return found
	}
	eventually(t, "the operator sees both runs", func() bool { return len(listed("chief", &v1.ListRunsRequest{})) == 2 })
	for _, name := range []string{"carol", "dave"} {
		for what, req := range map[string]*v1.ListRunsRequest{"all": {}, "those in a state": {State: v1.RunRunning}, "by a word": {Text: "build"}, "by type": {Type: v1.TypeShell}} {
			if found := listed(name, req); len(found) > 1 || len(found) == 1 && !found[ids[name]] {
				t.Errorf("%s lists %s: %v, and has %s", name, what, found, ids[name])
			}
		}
		if found := listed(name, &v1.ListRunsRequest{}); !found[ids[name]] {
			t.Errorf("%s does not list %s", name, ids[name])
		}
		if last, err := clients[name].GetRun(t.Context(), connect.NewRequest(&v1.GetRunRequest{Id: "last"})); err != nil || last.Msg.GetRun().GetId() != ids[name] {
			t.Errorf("the last run of %s: %v, %v", name, last, err)
		}
		events, err := clients[name].ListRunEvents(t.Context(), connect.NewRequest(&v1.ListRunEventsRequest{PageSize: 100}))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events.Msg.GetItems() {
			if e.GetRun() != ids[name] {
				t.Errorf("%s reads an event of %s", name, e.GetRun())
			}
		}
	}
	if found := listed("carol", &v1.ListRunsRequest{Owner: "dave"}); len(found) > 0 {
		t.Errorf("carol lists runs of dave: %v", found)
	}
	// A later round of the feed has read the events of both users.
	got := follower.readUntil(t, 2, ids["dave"])
	signal(t, ids["dave"], eventsSignal, &v1.EventsResponse{Events: []*v1.Event{
		happening(time.Now(), 0, "", v1.EventSubmitted), happening(time.Now(), 1, "build", v1.EventQueued), happening(time.Now(), 2, "build", v1.EventAssigned),
	}})
	got = append(got, follower.readUntil(t, 1, ids["dave"])...)
	if others := runEventsOf(t, got, ids["carol"]); len(others) > 0 {
		t.Errorf("dave follows events of carol: %v", others)
	}
	// A later stream replays only the events that the caller may see.
	later, _ := f.openStream(t, "/v1/events?since="+began.UTC().Format(time.RFC3339Nano), "Authorization", "Bearer "+tokens["carol"])
	if others := runEventsOf(t, later.readUntil(t, 1, ids["carol"]), ids["dave"]); len(others) > 0 {
		t.Errorf("carol is sent events of dave: %v", others)
	}
	// A new generation that an operator starts still belongs to the owner.
	end(t, ids["dave"], "failed")
	if _, err := clients["chief"].RetryRun(t.Context(), connect.NewRequest(&v1.RetryRunRequest{Id: ids["dave"]})); err != nil {
		t.Fatal(err)
	}
	if run, err := clients["dave"].GetRun(t.Context(), connect.NewRequest(&v1.GetRunRequest{Id: ids["dave"]})); err != nil || run.Msg.GetRun().GetGeneration() != 1 {
		t.Errorf("after a retry by an operator: %v, %v", run, err)
	}
	end(t, ids["carol"], "completed")
	end(t, ids["dave"], "completed")
}
