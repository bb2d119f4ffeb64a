package processes

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// Stack is a running `switchyard dev`.
type Stack struct {
	*Program
	Temporal, UI, Gateway, Store string
	Token                        string // for requests, or ""
}

// StackOf waits until a `switchyard dev` is up.
func StackOf(p *Program) *Stack {
	p.t.Helper()
	return &Stack{Program: p, Temporal: p.Field("Temporal"), UI: p.Field("Web UI"), Gateway: p.Field("Gateway"), Store: p.Field("Store")}
}

// Run is a run as JSON prints it.
type Run struct {
	ID      string         `json:"id"`
	Name    string         `json:"name"`
	State   string         `json:"state"`
	Reason  string         `json:"reason"`
	Error   string         `json:"error"`
	Context map[string]any `json:"context"`
	Tasks   map[string]struct {
		State   string `json:"state"`
		Reason  string `json:"reason"`
		Node    string `json:"node"`
		Attempt int    `json:"attempt"`
		Error   string `json:"error"`
		Result  struct {
			ExitCode        int            `json:"exitCode"`
			Stdout          string         `json:"stdout"`
			Stderr          string         `json:"stderr"`
			StdoutTruncated bool           `json:"stdoutTruncated"`
			Output          map[string]any `json:"output"`
		} `json:"result"`
	} `json:"tasks"`
}

// ParseRun decodes what a command prints about a run with `-o json`.
func ParseRun(t *testing.T, text string) Run {
	t.Helper()
	var r Run
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatalf("not a JSON document: %v\n%s", err, Tail(text))
	}
	return r
}

// Submit starts a run of a definition and returns its ID.
func (s *Stack) Submit(t *testing.T, definition string) string {
	t.Helper()
	var started struct{ ID string }
	if err := json.Unmarshal(Request(t, http.MethodPost, s.Gateway+"/v1/runs", "application/yaml", s.Token, definition), &started); err != nil {
		t.Fatal(err)
	}
	return started.ID
}

// Call calls a method of a service, such as RunService/GetRun, with JSON. A nil answer ignores the response.
func (s *Stack) Call(t *testing.T, method string, request, answer any) {
	t.Helper()
	body, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	text := Request(t, http.MethodPost, s.Gateway+"/switchyard.v1."+method, "application/json", s.Token, string(body))
	if answer == nil {
		return
	}
	if err := json.Unmarshal(text, answer); err != nil {
		t.Fatal(err)
	}
}

// Get returns a run with the first page of its tasks.
func (s *Stack) Get(t *testing.T, id string) Run {
	t.Helper()
	var answer struct{ Run Run }
	s.Call(t, "RunService/GetRun", map[string]any{"id": id}, &answer)
	return answer.Run
}

// End waits for the end of a run, and returns the run.
func (s *Stack) End(t *testing.T, id string) Run {
	t.Helper()
	Request(t, http.MethodGet, s.Gateway+"/v1/runs/"+id+"/events?follow=true", "application/json", s.Token, "") // the stream ends with the run
	return s.Get(t, id)
}

// AwaitRun waits until a run is in a state.
func (s *Stack) AwaitRun(t *testing.T, id, state string) {
	t.Helper()
	Await(t, "run "+id+" is "+state, func() bool { return s.Get(t, id).State == state })
}

// AwaitTask waits until a task of a run is in a state.
func (s *Stack) AwaitTask(t *testing.T, id, task, state string) {
	t.Helper()
	Await(t, "task "+task+" of "+id+" is "+state, func() bool { return s.Get(t, id).Tasks[task].State == state })
}

// Request sends a request, with a token unless it is "", and returns the body of its response.
func Request(t *testing.T, method, url, kind, token, body string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", kind)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %s %v\n%s", method, url, res.Status, err, Tail(string(text)))
	}
	return text
}

// Fetch returns the body of a page.
func Fetch(t *testing.T, url string) string {
	t.Helper()
	return string(Request(t, http.MethodGet, url, "application/json", "", ""))
}
