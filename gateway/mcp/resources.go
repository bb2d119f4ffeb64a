package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"connectrpc.com/connect"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/yosida95/uritemplate/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"switchyard/docs"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	guideURI         = "switchyard://guide"
	definitionURI    = "switchyard://definitions/{name}"
	runDefinitionURI = "switchyard://runs/{run}/definition"
	mimeJSON         = "application/json"
	mimeMarkdown     = "text/markdown"
)

// resource is a readable resource. Its URI may contain variables.
type resource struct {
	uri, title, description, mime string
	// tool produces the text, called with the variables and the fixed arguments.
	tool      string
	arguments map[string]any
	// read produces the text instead of tool, if it is set.
	read func(ctx context.Context, s *Services, variables map[string]any) (string, error)
}

// resources returns all resources.
func resources() []resource {
	return []resource{
		{uri: guideURI, title: "Language of definitions", description: "The guide to the workflow language.", mime: mimeMarkdown, read: readGuide},
		{uri: "switchyard://nodes", title: "Nodes", description: "The nodes of the fleet.", tool: "list_nodes"},
		{uri: "switchyard://nodes/{node}", title: "Node", description: "A node, with the state of its machine.", read: readNode},
		{uri: "switchyard://sessions", title: "Agent sessions", description: "The sessions of agents that tasks of type claude_relay can message, with their nodes.", read: readSessions},
		{uri: "switchyard://runs", title: "Runs", description: "The newest runs.", tool: "list_workflows"},
		{uri: "switchyard://runs/{run}", title: "Run", description: "A run, with the states of its tasks.", tool: "get_workflow_status"},
		{uri: "switchyard://runs/{run}/tasks/{task}", title: "Task", description: "A task of a run, with its result and attempts.", tool: "get_task_result"},
		{uri: "switchyard://runs/{run}/logs", title: "Logs of a run", description: "The last lines of output of the tasks of a run.", tool: "stream_task_output", arguments: map[string]any{waitName: 0}},
		{uri: "switchyard://runs/{run}/logs/{task}", title: "Log of a task", description: "The last lines of output of a task.", tool: "stream_task_output", arguments: map[string]any{waitName: 0}},
		{uri: runDefinitionURI, title: "Definition of a run", description: "The definition that a run was started with.", read: readRunDefinition},
		{uri: "switchyard://definitions", title: "Stored workflows", description: "The stored workflows.", tool: "list_definitions"},
		{uri: definitionURI, title: "Stored workflow", description: "The definition of a stored workflow.", read: readDefinition},
		{uri: "switchyard://dead-letters", title: "Dead letters", description: "The tasks that have used up their retries.", tool: "list_dead_letter_tasks"},
		{uri: "switchyard://approvals", title: "Runs that wait for approval", description: "The runs that await approval.", tool: "list_workflows", arguments: map[string]any{"state": v1.RunPendingApproval}},
	}
}

// addResources registers the resources.
func (s *Server) addResources() {
	for _, r := range resources() {
		if r.mime == "" {
			r.mime = mimeJSON
		}
		name := strings.ToLower(strings.ReplaceAll(r.title, " ", "-"))
		handler := s.reader(r)
		if strings.Contains(r.uri, "{") {
			s.served.AddResourceTemplate(&sdk.ResourceTemplate{URITemplate: r.uri, Name: name, Title: r.title, Description: r.description, MIMEType: r.mime}, handler)
			continue
		}
		s.served.AddResource(&sdk.Resource{URI: r.uri, Name: name, Title: r.title, Description: r.description, MIMEType: r.mime}, handler)
	}
}

// reader returns the handler that reads a resource.
func (s *Server) reader(r resource) sdk.ResourceHandler {
	template := uritemplate.MustNew(r.uri)
	return func(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		variables := map[string]any{}
		for name, value := range template.Match(req.Params.URI) {
			variables[name] = value.String()
		}
		text, err := s.read(ctx, r, variables)
		if connect.CodeOf(err) == connect.CodeNotFound {
			return nil, sdk.ResourceNotFoundError(req.Params.URI)
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %s", req.Params.URI, s.explain(err, &tool{}))
		}
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: req.Params.URI, MIMEType: r.mime, Text: text}}}, nil
	}
}

// read returns the text of a resource.
func (s *Server) read(ctx context.Context, r resource, variables map[string]any) (string, error) {
	if r.read != nil {
		return r.read(ctx, s.config.Services, variables)
	}
	for name, value := range r.arguments {
		variables[name] = value
	}
	arguments, err := json.Marshal(variables)
	if err != nil {
		return "", err
	}
	answer, err := s.invoke(ctx, s.tools[r.tool], arguments, nil)
	return string(answer), err
}

func readGuide(context.Context, *Services, map[string]any) (string, error) {
	return docs.Language, nil
}

func readNode(ctx context.Context, s *Services, variables map[string]any) (string, error) {
	res, err := s.Nodes.GetNode(ctx, connect.NewRequest(&v1.GetNodeRequest{Name: text(variables["node"])}))
	if err != nil {
		return "", err
	}
	return marshalJSON(res.Msg.GetNode())
}

// readSessions returns the agent sessions of the fleet in the form of the other lists.
func readSessions(ctx context.Context, s *Services, _ map[string]any) (string, error) {
	sessions := []v1.AgentSession{}
	for token := ""; ; {
		res, err := s.Nodes.ListNodes(ctx, connect.NewRequest(&v1.ListNodesRequest{PageSize: maxNodes, PageToken: token}))
		if err != nil {
			return "", err
		}
		sessions = append(sessions, v1.SessionsOf(res.Msg.GetItems())...)
		if token = res.Msg.GetNextPageToken(); token == "" {
			data, err := compact(map[string]any{"items": sessions})
			return string(data), err
		}
	}
}

func readDefinition(ctx context.Context, s *Services, variables map[string]any) (string, error) {
	res, err := s.Workflows.GetWorkflow(ctx, connect.NewRequest(&v1.GetWorkflowRequest{Name: text(variables["name"])}))
	if err != nil {
		return "", err
	}
	return marshalJSON(res.Msg.GetDefinition())
}

func readRunDefinition(ctx context.Context, s *Services, variables map[string]any) (string, error) {
	res, err := s.Runs.GetRunDefinition(ctx, connect.NewRequest(&v1.GetRunDefinitionRequest{Id: text(variables["run"])}))
	if err != nil {
		return "", err
	}
	return marshalJSON(res.Msg.GetDefinition())
}

func text(value any) string {
	s, _ := value.(string)
	return s
}

// marshalJSON returns a message as JSON.
func marshalJSON(m proto.Message) (string, error) {
	data, err := protojson.Marshal(m)
	return string(data), err
}
