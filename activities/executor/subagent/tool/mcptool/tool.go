package mcptool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"switchyard/activities/executor/subagent/tool"
)

const (
	// maxDescription bounds the description of a tool, and maxSchema its schema, in bytes.
	maxDescription = 8 << 10
	maxSchema      = 64 << 10
	// cancelLimit is how long a call may take to end after its context has ended.
	cancelLimit = 500 * time.Millisecond
)

// serverTool is a tool of a server.
type serverTool struct {
	server     *server
	name       string // the server's own name of the tool
	definition tool.Definition
}

var _ tool.Tool = (*serverTool)(nil)

func newServerTool(s *server, name string, t *sdk.Tool) (*serverTool, error) {
	schema, err := inputSchema(t.InputSchema)
	if err != nil {
		return nil, fmt.Errorf("the tool %s of MCP server %q: %w", t.Name, s.name, err)
	}
	description := clean(t.Description)
	if description == "" {
		description = clean(t.Title)
	}
	if len(description) > maxDescription {
		description = strings.ToValidUTF8(description[:maxDescription], "") + "…"
	}
	return &serverTool{s, t.Name, tool.Definition{Name: name, Description: description, Schema: schema}}, nil
}

// inputSchema returns the schema of the arguments, which is always of type object.
func inputSchema(given any) (json.RawMessage, error) {
	data, err := json.Marshal(given)
	if err != nil {
		return nil, err
	}
	if len(data) > maxSchema {
		return nil, fmt.Errorf("its schema has %d bytes, more than %d", len(data), maxSchema)
	}
	var object map[string]any
	if err := json.Unmarshal(data, &object); err != nil {
		return nil, errors.New("its schema is not an object")
	}
	if object == nil {
		object = map[string]any{}
	}
	if object["type"] != "object" {
		if object["type"] != nil {
			return nil, fmt.Errorf("its schema has the type %v; it must be object", object["type"])
		}
		object["type"] = "object"
	}
	if object["properties"] == nil {
		object["properties"] = map[string]any{}
	}
	return json.Marshal(object)
}

// Definition returns the description for the model.
func (t *serverTool) Definition() tool.Definition { return t.definition }

// Call calls the tool. Errors of the server are outcomes; an error is that of ctx, or means that the server was closed.
func (t *serverTool) Call(ctx context.Context, call tool.Call) (tool.Outcome, error) {
	arguments := bytes.TrimSpace(call.Arguments)
	if len(arguments) == 0 || bytes.Equal(arguments, []byte("null")) {
		arguments = []byte("{}")
	}
	if !json.Valid(arguments) || arguments[0] != '{' {
		return failure("the arguments are not a JSON object"), nil
	}
	limited, cancel := context.WithTimeout(ctx, t.server.o.callLimit)
	defer cancel()
	stop := context.AfterFunc(t.server.ending, cancel)
	defer stop()
	result, err := t.send(limited, &sdk.CallToolParams{Name: t.name, Arguments: json.RawMessage(arguments)})
	switch {
	case ctx.Err() != nil:
		return tool.Outcome{}, ctx.Err()
	case t.server.ending.Err() != nil:
		return tool.Outcome{}, fmt.Errorf("MCP server %q was closed during a call", t.server.name)
	case limited.Err() != nil:
		return failure("%s of MCP server %q did not answer within %s and was cancelled; its outcome is unknown", t.name, t.server.name, t.server.o.callLimit), nil
	case err != nil:
		return failure("%v", err), nil
	}
	return outcomeOf(result), nil
}

// send sends a call. It repeats the call once if the server has rejected it because the session is unknown.
func (t *serverTool) send(ctx context.Context, params *sdk.CallToolParams) (*sdk.CallToolResult, error) {
	for again := false; ; again = true {
		c, err := t.server.ensureConnected(ctx)
		if err != nil {
			return nil, fmt.Errorf("the call was not sent: %w", err)
		}
		result, err := c.call(ctx, params)
		if err == nil {
			return result, nil
		}
		if errors.Is(err, sdk.ErrSessionMissing) && !again {
			<-c.lost
			continue
		}
		if answer, ok := errors.AsType[*jsonrpc.Error](err); ok && !c.isLost() {
			return nil, fmt.Errorf("MCP server %q returned an error: %s", t.server.name, answer.Message)
		}
		if c.program != nil && ctx.Err() == nil {
			// The error should include how the program ended.
			select {
			case <-c.program.ended:
			case <-time.After(cancelLimit):
				c.abandon()
			}
		}
		return nil, c.explain(fmt.Errorf("the connection to MCP server %q was lost during the call, so its outcome is unknown: %w; the next call reconnects",
			t.server.name, err))
	}
}

// call makes one call. It returns soon after ctx has ended, whatever the server does.
func (c *connection) call(ctx context.Context, params *sdk.CallToolParams) (*sdk.CallToolResult, error) {
	type answer struct {
		result *sdk.CallToolResult
		err    error
	}
	answers := make(chan answer, 1)
	go func() {
		result, err := c.session.CallTool(ctx, params)
		answers <- answer{result, err}
	}()
	select {
	case a := <-answers:
		return a.result, a.err
	case <-ctx.Done():
	}
	timer := time.NewTimer(cancelLimit)
	defer timer.Stop()
	select {
	case a := <-answers:
		return a.result, a.err
	case <-timer.C: // a program that does not read blocks the write
		c.abandon()
		a := <-answers
		return a.result, a.err
	}
}

// failure returns the outcome of a failed call.
func failure(format string, args ...any) tool.Outcome {
	return tool.Outcome{Text: cut(clean(fmt.Sprintf(format, args...)), maxOutcome), IsError: true}
}
