package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/dev/servicetest"
	"switchyard/dev/testneeds"
	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

func TestMain(m *testing.M) { testneeds.NoLeaks(m) }

// limit is how long a test waits for an expected event.
const limit = 2 * time.Minute

// newEcho returns services that answer some calls.
func newEcho() *servicetest.Fake {
	f := &servicetest.Fake{}
	servicetest.AnswerWith(f, switchyardv1connect.RunServiceSubmitRunProcedure, &v1.SubmitRunResponse{Id: "a-1"})
	servicetest.AnswerWith(f, switchyardv1connect.RunServicePlanRunProcedure, &v1.PlanRunResponse{})
	servicetest.Answer(f, switchyardv1connect.RunServiceGetRunProcedure, func(_ context.Context, req *v1.GetRunRequest) (*v1.GetRunResponse, error) {
		if req.GetId() == "none" {
			return nil, rpcerror.NoRun("none")
		}
		return &v1.GetRunResponse{Run: &v1.Run{Id: req.GetId()}}, nil
	})
	servicetest.AnswerWith(f, switchyardv1connect.RunServiceListRunsProcedure, &v1.ListRunsResponse{})
	servicetest.AnswerWith(f, switchyardv1connect.RunServiceListRunEventsProcedure, &v1.ListRunEventsResponse{})
	servicetest.AnswerWith(f, switchyardv1connect.RunServiceKillTaskProcedure, &v1.KillTaskResponse{})
	servicetest.AnswerWith(f, switchyardv1connect.RunServiceCancelRunProcedure, &v1.CancelRunResponse{})
	servicetest.AnswerWith(f, switchyardv1connect.WorkflowServicePutWorkflowProcedure, &v1.PutWorkflowResponse{})
	servicetest.AnswerWith(f, switchyardv1connect.ScheduleServiceUpdateScheduleProcedure, &v1.UpdateScheduleResponse{})
	servicetest.AnswerWith(f, switchyardv1connect.TaskServiceSubmitTaskProcedure, &v1.SubmitTaskResponse{})
	servicetest.AnswerWith(f, switchyardv1connect.TaskServiceSubmitTasksProcedure, &v1.SubmitTasksResponse{})
	return f
}

// serve starts a server with a door in front of f.
func serve(t *testing.T, f *servicetest.Fake) *httptest.Server {
	t.Helper()
	others := http.NewServeMux()
	others.HandleFunc("GET /healthz", http.NotFound)
	door, err := New(Config{Services: v1.Services(), Calls: f.Handler(), Others: others, MaxBodyBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(door)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	return server
}

// send sends a request with a verbatim path.
func send(t *testing.T, server *httptest.Server, method, path, kind string, body io.Reader, headers ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, server.URL, body)
	if err != nil {
		t.Fatal(err)
	}
	req.URL.Opaque = strings.TrimPrefix(server.URL, "http:") + path
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	client := &http.Client{Transport: server.Client().Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	// A server closes a connection soon after it has refused a large body, and a slow client may then lose the answer.
	for tries := 1; (errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)) && tries < 10; tries++ {
		again := req.Clone(t.Context())
		if req.GetBody != nil {
			if again.Body, err = req.GetBody(); err != nil {
				t.Fatal(err)
			}
		}
		res, err = client.Do(again)
	}
	if err != nil {
		t.Fatalf("%s %.100s: %v", method, path, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s %.100s: %v", method, path, err)
	}
	return res, string(text)
}

// TestRequestsReachTheirCalls checks the messages that calls receive for paths, parameters and bodies.
func TestRequestsReachTheirCalls(t *testing.T) {
	input, err := structpb.NewStruct(map[string]any{"n": 1.0})
	if err != nil {
		t.Fatal(err)
	}
	yaml := "name: x\ntasks: {}\n"
	for name, c := range map[string]struct {
		method, path, kind, body string
		want                     proto.Message
	}{
		"path":                    {"GET", "/v1/runs/a-1", "", "", &v1.GetRunRequest{Id: "a-1"}},
		"alias":                   {"GET", "/runs/a-1/", "", "", &v1.GetRunRequest{Id: "a-1"}},
		"escapes":                 {"POST", "/v1/runs/a/tasks/each%5B3%5D/kill", "", "", &v1.KillTaskRequest{Id: "a", Task: "each[3]"}},
		"a colon":                 {"GET", "/v1/runs/a:plan", "", "", &v1.GetRunRequest{Id: "a:plan"}},
		"a percent sign":          {"GET", "/v1/runs/100%25", "", "", &v1.GetRunRequest{Id: "100%"}},
		"an escaped escape":       {"GET", "/v1/runs/a%252Fb", "", "", &v1.GetRunRequest{Id: "a%2Fb"}},
		"parameters":              {"GET", "/v1/runs?pageSize=3&page_token=x&name=a%20b", "", "", &v1.ListRunsRequest{PageSize: 3, PageToken: "x", Name: "a b"}},
		"a list":                  {"GET", "/v1/runs/a?tasks=b&tasks=c&brief=true", "", "", &v1.GetRunRequest{Id: "a", Tasks: []string{"b", "c"}, Brief: true}},
		"no stream":               {"GET", "/v1/runs/a/events?follow=false", "", "", &v1.ListRunEventsRequest{Id: "a"}},
		"no body":                 {"POST", "/v1/runs/a/cancel", "", "", &v1.CancelRunRequest{Id: "a"}},
		"JSON":                    {"POST", "/v1/runs/a/cancel", jsonType + "; charset=utf-8", `{"force":true}`, &v1.CancelRunRequest{Id: "a", Force: true}},
		"JSON without a type":     {"POST", "/v1/runs/a/cancel", "", `{"force":true}`, &v1.CancelRunRequest{Id: "a", Force: true}},
		"JSON as curl -d sends":   {"POST", "/v1/runs/a/cancel", formType, ` {"force":true}`, &v1.CancelRunRequest{Id: "a", Force: true}},
		"the same twice":          {"POST", "/v1/runs/a/cancel", jsonType, `{"id":"a"}`, &v1.CancelRunRequest{Id: "a"}},
		"a body and a parameter":  {"POST", "/v1/runs/a/cancel?force=true", jsonType, `{"reason":"r"}`, &v1.CancelRunRequest{Id: "a", Force: true, Reason: "r"}},
		"a name and an input":     {"POST", "/v1/runs", jsonType, `{"workflow":"x","input":{"n":1}}`, &v1.SubmitRunRequest{Source: &v1.SubmitRunRequest_Workflow{Workflow: "x"}, Input: input}},
		"enabled":                 {"PATCH", "/v1/schedules/s", jsonType, `{"enabled":false,"reason":"r"}`, &v1.UpdateScheduleRequest{Name: "s", Paused: proto.Bool(true), Reason: "r"}},
		"not enabled":             {"PATCH", "/v1/schedules/s", jsonType, `{"enabled":true}`, &v1.UpdateScheduleRequest{Name: "s", Paused: proto.Bool(false)}},
		"executor and retries":    {"POST", "/v1/tasks", jsonType, `{"executor":"shell","retries":2,"retry":{"backoffMs":5}}`, &v1.SubmitTaskRequest{Type: "shell", Retry: &v1.RetryPolicy{MaxRetries: proto.Int32(2), BackoffMs: proto.Int32(5)}}},
		"the same of each task":   {"POST", "/v1/tasks:batch", jsonType, `{"tasks":[{"executor":"shell","retries":0},{"type":"vps"}]}`, &v1.SubmitTasksRequest{Tasks: []*v1.SubmitTaskRequest{{Type: "shell", Retry: &v1.RetryPolicy{MaxRetries: proto.Int32(0)}}, {Type: "vps"}}}},
		"YAML":                    {"POST", "/v1/runs?idempotencyKey=k&batch=b", "application/yaml", yaml, &v1.SubmitRunRequest{Source: &v1.SubmitRunRequest_Document{Document: yaml}, IdempotencyKey: "k", Batch: "b"}},
		"a definition as JSON":    {"POST", "/workflows?replace=true", jsonType, `{"name":"x","tasks":{}}`, &v1.PutWorkflowRequest{Source: &v1.PutWorkflowRequest_Document{Document: `{"name":"x","tasks":{}}`}, Replace: true}},
		"a definition as YAML":    {"POST", "/workflows/", "application/yaml", yaml, &v1.PutWorkflowRequest{Source: &v1.PutWorkflowRequest_Document{Document: yaml}, Replace: true}},
		"a new definition":        {"POST", "/v1/workflows", "application/yaml", yaml, &v1.PutWorkflowRequest{Source: &v1.PutWorkflowRequest_Document{Document: yaml}}},
		"only a new definition":   {"POST", "/workflows?replace=false", "application/yaml", yaml, &v1.PutWorkflowRequest{Source: &v1.PutWorkflowRequest_Document{Document: yaml}}},
		"the same in the body":    {"POST", "/workflows", jsonType, `{"document":"name: x","replace":false}`, &v1.PutWorkflowRequest{Source: &v1.PutWorkflowRequest_Document{Document: "name: x"}}},
		"workflow of runs":        {"GET", "/runs?workflow=x&state=failed", "", "", &v1.ListRunsRequest{Name: "x", State: "failed"}},
		"YAML under a name":       {"PUT", "/v1/workflows/x", "text/yaml; charset=utf-8", yaml, &v1.PutWorkflowRequest{Source: &v1.PutWorkflowRequest_Document{Document: yaml}, Name: "x"}},
		"YAML for a plan":         {"POST", "/v1/runs:plan", "application/x-yaml", yaml, &v1.PlanRunRequest{Submit: &v1.SubmitRunRequest{Source: &v1.SubmitRunRequest_Document{Document: yaml}}}},
		"a time zone in a filter": {"GET", "/v1/runs?since=2026-01-01T02:00:00%2B02:00", "", "", mustParse(t, `{"since":"2026-01-01T00:00:00Z"}`, &v1.ListRunsRequest{})},
		"a time in a filter":      {"GET", "/v1/runs?since=2026-01-01T00:00:00Z", "", "", mustParse(t, `{"since":"2026-01-01T00:00:00Z"}`, &v1.ListRunsRequest{})},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEcho()
			var body io.Reader
			if c.body != "" {
				body = strings.NewReader(c.body)
			}
			res, text := send(t, serve(t, e), c.method, c.path, c.kind, body)
			calls := e.Calls()
			if res.StatusCode != http.StatusOK || len(calls) != 1 || !proto.Equal(calls[0].Request, c.want) {
				t.Errorf("%d %s: asked for %v, want %v", res.StatusCode, text, calls, c.want)
			}
		})
	}
}

func mustParse(t *testing.T, text string, m proto.Message) proto.Message {
	t.Helper()
	if err := codecs()(nil).Unmarshal([]byte(text), m); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestBadInputReachesNoCall checks that invalid input is rejected in a common form, with its position and a remedy.
func TestBadInputReachesNoCall(t *testing.T) {
	deep := `{"input":` + strings.Repeat(`{"a":`, 20_000) + "1" + strings.Repeat("}", 20_000) + `}`
	large := strings.Repeat(" ", 2<<20)
	for name, c := range map[string]struct {
		method, path, kind, body string
		status                   int
		code, message            string
	}{
		"a path that is near":          {"GET", "/v1/rums", "", "", 404, "not_found", "did you mean /v1/runs?"},
		"a near path with a run":       {"POST", "/v1/runs/nightly-20260101-abcdefgh/cancle", "", "", 404, "not_found", "did you mean /v1/runs/nightly-20260101-abcdefgh/cancel?"},
		"no path":                      {"GET", "/", "", "", 404, "not_found", `unknown path "/"; /openapi.json`},
		"a method for another door":    {"POST", "/healthz", "", "", 405, "invalid_argument", "/healthz takes GET, HEAD, not POST"},
		"another method":               {"PATCH", "/v1/runs/a", "", "", 405, "invalid_argument", "takes GET, HEAD, not PATCH"},
		"an escaped slash":             {"GET", "/v1/runs/a%2fb", "", "", 400, "invalid_argument", "%2F"},
		"dots":                         {"GET", "/v1/runs/../nodes", "", "", 400, "invalid_argument", `write it as "/v1/nodes"`},
		"escaped dots":                 {"GET", "/v1/runs/%2e%2e/nodes", "", "", 400, "invalid_argument", `write it as "/v1/nodes"`},
		"an empty segment":             {"GET", "/v1//runs", "", "", 400, "invalid_argument", `write it as "/v1/runs"`},
		"NUL in a path":                {"GET", "/v1/runs/a%00", "", "", 400, "invalid_argument", "control character"},
		"no UTF-8 in a path":           {"GET", "/v1/runs/%C3%28", "", "", 400, "invalid_argument", "UTF-8"},
		"unknown parameter":            {"GET", "/v1/runs?pagesiz=1", "", "", 400, "invalid_argument", "did you mean pageSize?"},
		"unknown parameter, unlike":    {"GET", "/v1/runs/a?xyzzy=1", "", "", 400, "invalid_argument", "there are brief, id, pageSize"},
		"parameter below a text":       {"GET", "/v1/runs?name.x=1", "", "", 400, "invalid_argument", "name has no fields"},
		"parameter of Connect":         {"GET", "/v1/runs?connect=v1", "", "", 400, "invalid_argument", `"connect"`},
		"no number":                    {"GET", "/v1/runs?pageSize=x", "", "", 400, "invalid_argument", "pageSize"},
		"too large a number":           {"GET", "/v1/runs?pageSize=99999999999", "", "", 400, "invalid_argument", "pageSize"},
		"no boolean":                   {"GET", "/v1/runs/a?brief=yes", "", "", 400, "invalid_argument", "write true or false"},
		"no time":                      {"GET", "/v1/runs?since=yesterday", "", "", 400, "invalid_argument", "2026-01-31T12:00:00Z"},
		"a plus that is a space":       {"GET", "/v1/runs?since=2026-01-01T00:00:00+02:00", "", "", 400, "invalid_argument", "%2B"},
		"no duration":                  {"POST", "/v1/runs?options.heartbeatTimeout=1h", "", `{}`, 400, "invalid_argument", "90s"},
		"an object as a parameter":     {"POST", "/v1/runs?input=1", "", `{}`, 400, "invalid_argument", "send it in a JSON body"},
		"a parameter twice":            {"GET", "/v1/runs?state=failed&state=running", "", "", 400, "invalid_argument", "state is given 2 times"},
		"no UTF-8 in a parameter":      {"GET", "/v1/runs?name=%FF", "", "", 400, "invalid_argument", "UTF-8"},
		"NUL in a parameter":           {"GET", "/v1/runs?name=a%00b", "", "", 400, "invalid_argument", "NUL"},
		"a bad escape in a parameter":  {"GET", "/v1/runs?name=%zz", "", "", 400, "invalid_argument", "%zz"},
		"a semicolon":                  {"GET", "/v1/runs?name=a;state=b", "", "", 400, "invalid_argument", "semicolon"},
		"follow where there is none":   {"GET", "/v1/runs?follow=true", "", "", 400, "invalid_argument", `"follow"`},
		"a variable as a parameter":    {"GET", "/v1/runs/a?id=b", "", "", 400, "invalid_argument", "is already in the path"},
		"another id in the body":       {"POST", "/v1/runs/a/cancel", jsonType, `{"id":"b"}`, 400, "invalid_argument", `"a" in the path`},
		"two values of a field":        {"POST", "/v1/runs/a/cancel?force=true", jsonType, `{"force":false}`, 400, "invalid_argument", `force is false in the body and "true"`},
		"a document and a name":        {"POST", "/v1/runs?workflow=x", "application/yaml", "name: y", 400, "invalid_argument", "the body has document and the query has workflow"},
		"a document twice":             {"POST", "/v1/runs", jsonType, `{"document":"","workflow":"x"}`, 400, "invalid_argument", "oneof"},
		"unknown field":                {"POST", "/v1/runs/a/cancel", jsonType, `{"forse":true}`, 400, "invalid_argument", `line 1, column 2 of the body: unknown field "forse"; did you mean force?`},
		"unknown field of an option":   {"POST", "/v1/runs", jsonType, "{\n \"options\": {\"heartbeatTimout\": \"1s\"}}", 400, "invalid_argument", `line 2, column 14 of the body: unknown field "heartbeatTimout"; did you mean heartbeatTimeout?`},
		"unknown field of one below":   {"POST", "/v1/tasks:batch", jsonType, `{"tasks":[{"type":"shell","batchId":"x"}]}`, 400, "invalid_argument", `unknown field "batchId"; did you mean batch?`},
		"a part of a field":            {"POST", "/v1/tasks:batch", jsonType, `{"batch":"x"}`, 400, "invalid_argument", `unknown field "batch"; did you mean batchId?`},
		"a field of one below":         {"POST", "/v1/tasks:batch", jsonType, `{"env":{}}`, 400, "invalid_argument", `unknown field "env"; it belongs in tasks[]`},
		"a field of the options":       {"POST", "/v1/runs", jsonType, `{"workflow":"x","heartbeatTimeout":"1s"}`, 400, "invalid_argument", `unknown field "heartbeatTimeout"; it belongs in options`},
		"a field of a definition":      {"POST", "/v1/runs", jsonType, `{"definition":{"name":"x","tasks":{"a":{"dependsOn":[],"maxRetries":1}}}}`, 400, "invalid_argument", `unknown field "maxRetries"; it belongs in definition.tasks.NAME.retry`},
		"unknown field, unlike":        {"POST", "/v1/runs/a/cancel", jsonType, `{"xyzzy":true}`, 400, "invalid_argument", `unknown field "xyzzy"; there are force, id, now, reason, requestId`},
		"a path with another prefix":   {"GET", "/api/nodes", "", "", 404, "not_found", "did you mean /v1/nodes?"},
		"a path without the prefix":    {"POST", "/nodes/a/drain", "", "", 404, "not_found", "did you mean /v1/nodes/a/drain?"},
		"a path of another method":     {"POST", "/api/vps/create", "", "", 404, "not_found", `unknown path "/api/vps/create"; /openapi.json lists all paths`},
		"a long value of a variable":   {"GET", "/api/tasks/pending-approval", "", "", 404, "not_found", "/openapi.json lists all paths"},
		"workflow and name":            {"GET", "/v1/runs?workflow=a&name=b", "", "", 400, "invalid_argument", "workflow and name are two names of one parameter"},
		"a text that is a boolean":     {"POST", "/v1/runs/a/cancel", jsonType, `{"force":"much"}`, 400, "invalid_argument", "line 1, column 10"},
		"a field twice":                {"POST", "/v1/runs/a/cancel", jsonType, `{"force":true,"force":true}`, 400, "invalid_argument", "duplicate"},
		"a key of the input twice":     {"POST", "/v1/runs", jsonType, `{"workflow":"x","input":{"a":1,"a":2}}`, 400, "invalid_argument", "duplicate"},
		"a number that would change":   {"POST", "/v1/runs", jsonType, `{"workflow":"x","input":{"ids":[1,1234567890123456789]}}`, 400, "invalid_argument", "the body: input.ids[1]: 1234567890123456789 cannot be kept exactly"},
		"a definition that would":      {"POST", "/v1/runs", jsonType, `{"definition":{"name":"x","context":{"id":9007199254740993.0}}}`, 400, "invalid_argument", "the body: definition.context.id: 9007199254740993.0 cannot be kept exactly"},
		"enabled and paused":           {"PATCH", "/v1/schedules/s", jsonType, `{"enabled":false,"paused":false}`, 400, "invalid_argument", "enabled and paused are two names of one field"},
		"enabled that is a text":       {"PATCH", "/v1/schedules/s", jsonType, `{"enabled":"no"}`, 400, "invalid_argument", `enabled is "no"; it must be true or false`},
		"executor and type":            {"POST", "/v1/tasks", jsonType, `{"executor":"shell","type":"shell"}`, 400, "invalid_argument", "executor and type are two names of one field"},
		"retries and maxRetries":       {"POST", "/v1/tasks", jsonType, `{"retries":1,"retry":{"maxRetries":2}}`, 400, "invalid_argument", "retries and retry.maxRetries are two names of one field"},
		"half of a body":               {"POST", "/v1/runs", jsonType, `{"workflow":`, 400, "invalid_argument", "the body"},
		"two bodies":                   {"POST", "/v1/runs", jsonType, `{"workflow":"x"} {}`, 400, "invalid_argument", "line 1, column 18"},
		"a list for an object":         {"POST", "/v1/runs", jsonType, `[]`, 400, "invalid_argument", "the body"},
		"a deep body":                  {"POST", "/v1/runs", jsonType, deep, 400, "invalid_argument", "the body"},
		"no UTF-8 in JSON":             {"POST", "/v1/runs", jsonType, "{\"workflow\":\"\xff\"}", 400, "invalid_argument", "UTF-8"},
		"no UTF-8 in YAML":             {"POST", "/v1/runs", "application/yaml", "name: \xff", 400, "invalid_argument", "UTF-8"},
		"a form":                       {"POST", "/v1/runs", formType, "workflow=x", 415, "invalid_argument", "application/yaml"},
		"XML":                          {"POST", "/v1/runs/a/cancel", "text/xml", "<a/>", 415, "invalid_argument", "takes a body of type application/json, not text/xml"},
		"proto":                        {"POST", "/v1/runs", "application/proto", "x", 415, "invalid_argument", "application/json"},
		"a type that cannot be read":   {"POST", "/v1/runs", "a/b/c", "{}", 415, "invalid_argument", "Content-Type"},
		"YAML where there is no place": {"POST", "/v1/runs/a/cancel", "application/yaml", "force: true", 415, "invalid_argument", "application/json"},
		"a body for GET":               {"GET", "/v1/runs", jsonType, "{}", 400, "invalid_argument", "takes no body"},
		"a body for DELETE":            {"DELETE", "/v1/workflows/a", jsonType, `{"name":"b"}`, 400, "invalid_argument", "takes no body"},
		"a large body":                 {"POST", "/v1/runs", jsonType, large, 413, "resource_exhausted", "1 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEcho()
			var body io.Reader
			if c.body != "" {
				body = strings.NewReader(c.body)
			}
			res, text := send(t, serve(t, e), c.method, c.path, c.kind, body)
			wantError(t, res, text, c.status, c.code, c.message)
			if calls := e.Calls(); len(calls) != 0 {
				t.Errorf("a call was made: %v", calls)
			}
		})
	}
}

// wantError checks that a response is an error in the common form.
func wantError(t *testing.T, res *http.Response, text string, status int, code, message string) {
	t.Helper()
	var body rpcerror.Body
	if err := json.Unmarshal([]byte(text), &body); err != nil {
		t.Fatalf("%d with no JSON: %.300s", res.StatusCode, text)
	}
	if res.StatusCode != status || body.Code != code || !strings.Contains(body.Message, message) || body.Details == nil {
		t.Errorf("%d %.500s\nwant %d %s %s", res.StatusCode, text, status, code, message)
	}
	if kind := res.Header.Get("Content-Type"); kind != jsonType {
		t.Errorf("Content-Type is %s", kind)
	}
}

func TestErrorsOfCallsHaveDetails(t *testing.T) {
	res, text := send(t, serve(t, newEcho()), "GET", "/v1/runs/none", "", nil)
	wantError(t, res, text, 404, "not_found", `no run "none"`)
	if want := `"details":[{"@type":"type.googleapis.com/google.rpc.ResourceInfo","resourceType":"run",`; !strings.Contains(strings.ReplaceAll(text, " ", ""), want) {
		t.Errorf("%s has no %s", text, want)
	}
	res, text = send(t, serve(t, newEcho()), "GET", "/v1/runs/a/definition", "", nil)
	wantError(t, res, text, 501, "unimplemented", "")
}

func TestZeroValuesArePrinted(t *testing.T) {
	server := serve(t, newEcho())
	if _, text := send(t, server, "GET", "/v1/runs", "", nil); strings.ReplaceAll(text, " ", "") != `{"items":[],"nextPageToken":"","totals":{}}` {
		t.Errorf("an empty list is %s", text)
	}
	if _, text := send(t, server, "GET", "/v1/runs/a", "", nil); !strings.Contains(strings.ReplaceAll(text, " ", ""), `"generation":0`) {
		t.Errorf("a run is %s", text)
	}
}

func TestHeadAndOptionsAreAnswered(t *testing.T) {
	server := serve(t, newEcho())
	if res, text := send(t, server, "HEAD", "/v1/runs/a", "", nil); res.StatusCode != 200 || text != "" || res.Header.Get("Content-Type") != jsonType {
		t.Errorf("HEAD: %d %q %v", res.StatusCode, text, res.Header)
	}
	if res, _ := send(t, server, "HEAD", "/v1/runs/none", "", nil); res.StatusCode != 404 {
		t.Errorf("HEAD of what is missing: %d", res.StatusCode)
	}
	if res, text := send(t, server, "OPTIONS", "/v1/runs", "", nil); res.StatusCode != 204 || text != "" || res.Header.Get("Allow") != "GET, HEAD, POST" {
		t.Errorf("OPTIONS: %d %q %v", res.StatusCode, text, res.Header)
	}
	if res, _ := send(t, server, "DELETE", "/v1/runs", "", nil); res.Header.Get("Allow") != "GET, HEAD, POST" {
		t.Errorf("DELETE: %v", res.Header)
	}
}

// TestHeadersOfOtherProtocolsAreIgnored checks that headers of other protocols do not affect REST requests.
func TestHeadersOfOtherProtocolsAreIgnored(t *testing.T) {
	server := serve(t, newEcho())
	for _, header := range [][]string{
		{"Connect-Protocol-Version", "1"}, {"Connect-Timeout-Ms", "x"}, {"X-Server-Timeout", "-1"}, {"X-Server-Timeout", "x"},
		{"Accept-Encoding", "br;q=1, gzip;q=0.5"}, {"Grpc-Timeout", "x"}, {"Accept", "text/html"},
	} {
		if res, text := send(t, server, "POST", "/v1/runs/a/cancel", jsonType, strings.NewReader("{}"), header...); res.StatusCode != 200 || !json.Valid([]byte(text)) || res.Header.Get("Accept-Encoding") != "" {
			t.Errorf("%v: %d %s %v", header, res.StatusCode, text, res.Header)
		}
	}
	res, text := send(t, server, "POST", "/v1/runs/a/cancel", jsonType, strings.NewReader("{}"), "Content-Encoding", "gzip")
	wantError(t, res, text, 415, "invalid_argument", "gzip")
}

func TestLargeAnswersAreCompressedOnDemand(t *testing.T) {
	server := serve(t, newEcho())
	path := "/v1/runs/" + strings.Repeat("x", 2*minCompressed)
	res, text := send(t, server, "GET", path, "", nil, "Accept-Encoding", "gzip")
	if res.Header.Get("Content-Encoding") != "gzip" || len(text) > minCompressed {
		t.Errorf("%v, %d bytes", res.Header, len(text))
	}
	if res, text := send(t, server, "GET", path, "", nil, "Accept-Encoding", "identity"); res.Header.Get("Content-Encoding") != "" || !json.Valid([]byte(text)) {
		t.Errorf("%v %.100s", res.Header, text)
	}
}

// TestUnknownProceduresAreUnimplemented checks that Connect and gRPC clients get the expected error for an unknown service.
func TestUnknownProceduresAreUnimplemented(t *testing.T) {
	server := serve(t, newEcho())
	for kind, option := range map[string]connect.ClientOption{"connect": connect.WithProtoJSON(), "grpc": connect.WithGRPC(), "grpc-web": connect.WithGRPCWeb()} {
		transport := &http.Transport{Protocols: new(http.Protocols)}
		transport.Protocols.SetUnencryptedHTTP2(true)
		client := connect.NewClient[v1.GetRunRequest, v1.GetRunResponse](&http.Client{Transport: transport}, server.URL+"/other.v1.Service/Call", option)
		if _, err := client.CallUnary(t.Context(), connect.NewRequest(&v1.GetRunRequest{})); connect.CodeOf(err) != connect.CodeUnimplemented || !strings.Contains(err.Error(), "/other.v1.Service/Call") {
			t.Errorf("%s: %v", kind, err)
		}
		transport.CloseIdleConnections()
	}
}

// FuzzRequest sends arbitrary requests. The door must not fail on any of them, and each error must have the common form.
func FuzzRequest(f *testing.F) {
	f.Add("POST", "/v1/runs", "idempotencyKey=k", jsonType, []byte(`{"workflow":"x","input":{"a":1}}`))
	f.Add("POST", "/v1/runs", "batch=b", "application/yaml", []byte("name: x\n"))
	f.Add("GET", "/runs/a%5B1%5D/tasks/b:c/explain", "", "", []byte(nil))
	f.Add("GET", "/v1/runs", "since=2026-01-01T00:00:00Z&options.x=1&pageSize=-1", "", []byte(nil))
	f.Add("POST", "/v1/runs/a/cancel", "force=true", formType, []byte(`{"id":"a"}`))
	f.Add("PUT", "/v1/workflows/x/../%2f%00", "%zz;", "a/b/c", []byte("\xff"))
	e := newEcho()
	door, err := New(Config{Services: v1.Services(), Calls: e.Handler(), MaxBodyBytes: 1 << 20})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, method, path, query, kind string, body []byte) {
		e.Forget() // fuzzing may make millions of calls
		at, err := url.ParseRequestURI(path)
		if err != nil {
			return
		}
		at.RawQuery = query
		r := (&http.Request{Method: method, URL: at, Header: http.Header{"Content-Type": {kind}}, Host: "localhost", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body))}).WithContext(t.Context())
		w := httptest.NewRecorder()
		door.ServeHTTP(w, r)
		if w.Code >= 500 && w.Code != http.StatusNotImplemented {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		var said rpcerror.Body
		isCall := strings.HasPrefix(kind, "application/grpc") || strings.HasPrefix(kind, "application/connect")
		if err := json.Unmarshal(w.Body.Bytes(), &said); w.Code >= 400 && !isCall && (err != nil || said.Code == "" || said.Message == "" || said.Details == nil) {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}

// endless is a body of undeclared length that never ends.
type endless struct{ read atomic.Int64 }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	e.read.Add(int64(len(p)))
	return len(p), nil
}

func TestBodyWithoutALengthIsBounded(t *testing.T) {
	e := newEcho()
	res, text := send(t, serve(t, e), "POST", "/v1/runs", jsonType, &endless{})
	wantError(t, res, text, 413, "resource_exhausted", "1 MiB")
	if len(e.Calls()) != 0 {
		t.Error("a call was made")
	}
}

// TestLargeBodyIsRefusedUnread announces a large body and checks that the server does not read it.
func TestLargeBodyIsRefusedUnread(t *testing.T) {
	server, body := serve(t, newEcho()), &endless{}
	req, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+"/v1/runs", body)
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = 10 << 20
	req.Header.Set("Content-Type", jsonType)
	req.Header.Set("Expect", "100-continue")
	transport := &http.Transport{ExpectContinueTimeout: limit}
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if read := body.read.Load(); res.StatusCode != 413 || read != 0 {
		t.Errorf("%d after %d bytes", res.StatusCode, read)
	}
}

// TestClientThatLeavesEndsTheCall checks that the context of a call ends when its REST client disconnects.
func TestClientThatLeavesEndsTheCall(t *testing.T) {
	for name, protocols := range map[string]func(*http.Protocols){
		"HTTP/1": func(p *http.Protocols) { p.SetHTTP1(true) },
		"HTTP/2": func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) },
	} {
		t.Run(name, func(t *testing.T) {
			e, held := newEcho(), make(chan error)
			servicetest.Answer(e, switchyardv1connect.RunServiceCancelRunProcedure, func(ctx context.Context, _ *v1.CancelRunRequest) (*v1.CancelRunResponse, error) {
				held <- nil
				<-ctx.Done()
				held <- ctx.Err()
				return nil, ctx.Err()
			})
			server := serve(t, e)
			transport := &http.Transport{Protocols: new(http.Protocols)}
			protocols(transport.Protocols)
			defer transport.CloseIdleConnections()
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			req, err := http.NewRequestWithContext(ctx, "POST", server.URL+"/v1/runs/a/cancel", strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() {
				res, err := transport.RoundTrip(req)
				if err == nil {
					_ = res.Body.Close()
				}
				ended <- err
			}()
			<-held
			leave()
			select {
			case err := <-held:
				if err == nil {
					t.Error("the context of the call has not ended")
				}
			case <-time.After(limit):
				t.Fatal("the call does not end")
			}
			if err := <-ended; err == nil {
				t.Error("the request got an answer")
			}
		})
	}
}
