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

// path is the URL path at which a gateway serves MCP.
const path = "/mcp"

// offered lists the gateway's tools that an agent gets.
var offered = []string{
	"submit_workflow", "submit_task", "get_workflow_status", "get_task_result", "stream_task_output", "explain_task", "list_tasks",
	"list_workflows", "list_definitions", "validate_definition", "cancel_task", "cancel_workflow", "retry_workflow", "list_nodes",
}

// Options configure the gateway and the agent that uses it.
type Options struct {
	// Gateway is the URL of the gateway, from the task's variable SWITCHYARD_GATEWAY.
	Gateway string
	// Token is sent to the gateway, from the task's variable SWITCHYARD_TOKEN. It may be empty.
	Token string
	// Run and Task identify the agent.
	Run, Task string
	// KeyPrefix and the id of a call form the idempotency key of what the call starts. KeyPrefix is unique to the
	// instance of the task, and the same in all its attempts.
	KeyPrefix string
	// Batch is the batch of the runs that the agent starts. If it is empty, the id of Run is used.
	Batch string
	// Defaults is the spec of the agent, from which the specs of its subagents are derived.
	Defaults *v1.SubagentSpec
	// SecretEnv holds references to the secrets of the agent's task, and Env its plain variables. The subagents get
	// both.
	SecretEnv, Env map[string]string
	// Transport carries the requests. If it is nil, New clones http.DefaultTransport.
	Transport http.RoundTripper
}

// Fleet holds the tools. The caller must call Close.
type Fleet struct {
	o       Options
	servers *mcptool.Servers
	runs    switchyardv1connect.RunServiceClient
	idle    func()
	tools   []tool.Tool
}

// New connects to the gateway. It omits tools that the token may not use.
func New(ctx context.Context, o Options) (*Fleet, error) {
	if o.Gateway == "" {
		return nil, errors.New(`the tool "fleet" needs a gateway: set SWITCHYARD_GATEWAY in the task's env, and SWITCHYARD_TOKEN in its secretEnv if the gateway requires authentication`)
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

// Tools returns the tools for the agent.
func (f *Fleet) Tools() []tool.Tool { return slices.Clone(f.tools) }

// Close ends calls in progress. Runs that were started continue. A second Close is a no-op.
func (f *Fleet) Close() error {
	err := f.servers.Close()
	f.idle()
	return err
}

// maxKey and maxBatch bound idempotency keys and batch names, in bytes.
const maxKey, maxBatch = 255, 63

// key returns the idempotency key for what a call starts.
func (f *Fleet) key(call tool.Call) string {
	key := f.o.KeyPrefix + "/" + call.ID
	if len(key) > maxKey || strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) {
		hash := sha256.Sum256([]byte(key))
		return "agent/" + hex.EncodeToString(hash[:])
	}
	return key
}

// batchName turns a name into a valid batch name.
func batchName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r) {
			return r
		}
		return '-'
	}, name)
	return strings.TrimLeft(name[:min(len(name), maxBatch)], "._-")
}

// bearer sends a token with each request unless the token is empty.
type bearer struct {
	next  http.RoundTripper
	token string
}

// RoundTrip sends a request with the token.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.next.RoundTrip(r)
}
