package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"switchyard/gateway/mcp"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// agentTasks is the number of tasks in the run whose status the agents request.
const agentTasks = 1000

// benchAgents compares the tools of agents with the call that shows a run, alternating between the two.
func benchAgents(ctx context.Context, y *cluster, url string, rounds int) error {
	run, err := y.submit(ctx, wideDefinition(agentTasks))
	if err != nil {
		return err
	}
	if _, err := y.await(ctx, run, time.Now()); err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	defer client.CloseIdleConnections()
	post := func(path, body string) func() (*http.Request, error) {
		return func() (*http.Request, error) {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+path, strings.NewReader(body))
			if err == nil {
				req.Header.Set("Content-Type", "application/json")
				req.Header.Set("Accept", "application/json, text/event-stream")
			}
			return req, err
		}
	}
	shown := post(switchyardv1connect.RunServiceGetRunProcedure, fmt.Sprintf(`{"id":%q,"pageSize":20,"brief":true}`, run.GetID()))
	fmt.Printf("| request | took | a page of 20 tasks by Connect | ratio | size of the answer |\n|---|--:|--:|--:|--:|\n")
	for _, test := range []struct{ name, body string }{
		{"tools/list", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`},
		{fmt.Sprintf("get_workflow_status of %d tasks", agentTasks), fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_workflow_status","arguments":{"run":%q}}}`, run.GetID())},
	} {
		var ours, theirs []time.Duration
		var size int64
		for call := range (rounds + 1) * doorCalls {
			a, n, err := timeRequest(client, post(mcp.Path, test.body))
			if err != nil {
				return err
			}
			b, _, err := timeRequest(client, shown)
			if err != nil {
				return err
			}
			if size = n; call >= doorCalls { // the first round warms the caches
				ours, theirs = append(ours, a), append(theirs, b)
			}
		}
		a, b := median(ours), median(theirs)
		fmt.Printf("| %s | %s | %s | %.2f | %d bytes |\n", test.name, a.Round(10*time.Microsecond), b.Round(10*time.Microsecond), a.Seconds()/b.Seconds(), size)
	}
	return nil
}
