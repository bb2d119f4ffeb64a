package fleet

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strings"

	"switchyard/activities/executor/subagent/tool"
	"switchyard/activities/executor/subagent/tool/mcptool"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// path is where a gateway serves the protocol.
const path = "/mcp"

// offered are the tools of the gateway that an agent gets.
var offered = []string{
	"submit_workflow", "submit_task", "get_workflow_status", "get_task_result", "stream_task_output", "explain_task", "list_tasks",
	"list_workflows", "list_definitions", "validate_definition", "cancel_task", "cancel_workflow", "retry_workflow", "list_nodes",
}

// Options say which gateway is used, and for whom.
type Options struct {
	// Gateway is its URL: the variable SWITCHYARD_GATEWAY of the task.
	Gateway string
	// Token is sent to it: the variable SWITCHYARD_TOKEN of the task; empty: none.
	Token string
	// Run and Task are those of the agent.
	Run, Task string
	// KeyPrefix and the id of a call make the idempotency key of what the call starts. It is unique to the instance of the
	// task, and the same in all its attempts.
	KeyPrefix string
	// Batch is that of the runs that the agent starts; empty: the id of Run.
	Batch string
	// Defaults is the spec of the agent, from which those of its subagents are made.
	Defaults *v1.SubagentSpec
	// SecretEnv has the places of the secrets of the agent's task, and Env plain variables, which its subagents get, too.
	SecretEnv, Env map[string]string
	// Transport carries the requests; nil: one like http.DefaultTransport.
	Transport http.RoundTripper
}

// Fleet has the tools. Close must be called.
type Fleet struct {
	o       Options
	servers *mcptool.Servers
	runs    switchyardv1connect.RunServiceClient
	idle    func()
	tools   []tool.Tool
}

// New connects to the gateway. Tools that its token may not use are left out.
func New(ctx context.Context, o Options) (*Fleet, error) {
	if o.Gateway == "" {
		return nil, errors.New(`the tool "fleet" needs a gateway: set SWITCHYARD_GATEWAY in the task's env, and SWITCHYARD_TOKEN in its secretEnv if the gateway asks for a log-in`)
	}
	o.Gateway = strings.TrimRight(o.Gateway, "/")
	o.Batch = batchName(cmp.Or(o.Batch, o.Run))
	idle := func() {}
	if o.Transport == nil {
		own := http.DefaultTransport.(*http.Transport).Clone()
		o.Transport, idle = own, own.CloseIdleConnections
	}
	server := &v1.McpServer{Url: o.Gateway + path}
	if o.Token != "" {
		server.Headers = map[string]string{"Authorization": "Bearer $SWITCHYARD_TOKEN"}
	}
	servers, err := mcptool.Connect(ctx, map[string]*v1.McpServer{"fleet": server}, mcptool.Options{
		Env: map[string]string{"SWITCHYARD_TOKEN": o.Token}, Plain: true, Transport: o.Transport,
	})
	if err != nil {
		idle()
		return nil, err
	}
	f := &Fleet{o: o, servers: servers, idle: idle}
	f.runs = switchyardv1connect.NewRunServiceClient(&http.Client{Transport: bearer{o.Transport, o.Token}}, o.Gateway)
	submits := false
	for _, t := range servers.Tools() {
		if name := t.Definition().Name; slices.Contains(offered, name) {
			f.tools = append(f.tools, newGatewayTool(f, t))
			submits = submits || name == "submit_workflow"
		}
	}
	if submits {
		f.tools = append(f.tools, askPerson{f})
		if o.Defaults != nil {
			f.tools = append(f.tools, dispatchSubagents{f})
		}
	}
	return f, nil
}

// Tools returns the tools.
func (f *Fleet) Tools() []tool.Tool { return slices.Clone(f.tools) }

// Close ends calls. Runs that were started continue. A second call does nothing.
func (f *Fleet) Close() error {
	err := f.servers.Close()
	f.idle()
	return err
}

// maxKey is the longest idempotency key, and maxBatch the longest name of a batch, in bytes.
const maxKey, maxBatch = 255, 63

// key returns the idempotency key of what a call starts.
func (f *Fleet) key(call tool.Call) string {
	key := f.o.KeyPrefix + "/" + call.ID
	if len(key) > maxKey || strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) {
		hash := sha256.Sum256([]byte(key))
		return "agent/" + hex.EncodeToString(hash[:])
	}
	return key
}

// batchName returns the name of a batch that is like another name.
func batchName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r) {
			return r
		}
		return '-'
	}, name)
	return strings.TrimLeft(name[:min(len(name), maxBatch)], "._-")
}

// bearer sends a token with each request, or none.
type bearer struct {
	next  http.RoundTripper
	token string
}

// RoundTrip sends one request.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.next.RoundTrip(r)
}
