package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"connectrpc.com/connect"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"switchyard/gateway/auth"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
)

// usageError reports problems with the arguments of a tool.
type usageError struct{ problems []string }

func (e usageError) Error() string { return strings.Join(e.problems, "\n") }

// usagef returns a usageError with a formatted text.
func usagef(format string, args ...any) error {
	return usageError{[]string{fmt.Sprintf(format, args...)}}
}

// failureResult returns the result of a failed tool for the model: what failed, where, and the remedy.
func (s *Server) failureResult(ctx context.Context, t *tool, err error) *sdk.CallToolResult {
	return errorResult(s.explain(auth.EndOf(ctx, err), t))
}

func errorResult(text string) *sdk.CallToolResult {
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: cutText(text, maxError)}}}
}

// maxError bounds the text of an error, in bytes.
const maxError = 4000

// explain returns the text of an error for the model.
func (s *Server) explain(err error, t *tool) string {
	if problems, ok := errors.AsType[source.Problems](err); ok {
		return problemText(problems) + "\nThe resource " + guideURI + " documents the language; validate_definition checks a definition."
	}
	if usage, ok := errors.AsType[usageError](err); ok {
		return usage.Error()
	}
	refused, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return err.Error()
	}
	if !connect.IsWireError(err) && s.config.Failure != nil {
		if text := s.config.Failure(err); text != "" {
			return text
		}
	}
	text := refused.Code().String() + ": " + refused.Message()
	for _, detail := range refused.Details() {
		value, err := detail.Value()
		if err != nil {
			continue
		}
		if failure, ok := value.(*v1.ValidationFailure); ok && len(failure.GetProblems()) > 0 {
			return s.explain(source.Problems(failure.GetProblems()), t)
		}
	}
	if hint := hintFor(refused.Code(), t); hint != "" {
		text += "\n" + hint
	}
	return text
}

// hintFor returns the remedy for an error code, or "" if the error text already contains it.
func hintFor(code connect.Code, t *tool) string {
	switch code {
	case connect.CodeNotFound:
		if t.call.method != nil && strings.Contains(string(t.call.method.Parent().Name()), "Node") {
			return "list_nodes lists the nodes."
		}
		return "list_workflows lists the runs, list_tasks their tasks, and list_definitions the stored workflows."
	case connect.CodePermissionDenied:
		return "Ask a person with that role, or use a token of that role."
	case connect.CodeAborted:
		return "The state does not allow it now; get_workflow_status and get_task_result show the state."
	case connect.CodeResourceExhausted, connect.CodeUnavailable, connect.CodeDeadlineExceeded:
		return "Try again later."
	}
	return ""
}

// problemText lists the problems of a definition with their positions, one per line.
func problemText(problems source.Problems) string {
	lines := make([]string, 0, len(problems)+1)
	lines = append(lines, fmt.Sprintf("The definition has %d problem(s):", len(problems)))
	for _, p := range problems {
		line := "- "
		if p.GetLine() > 0 {
			line += fmt.Sprintf("line %d, column %d, ", p.GetLine(), p.GetColumn())
		}
		line += p.GetPath() + ": " + p.GetMessage()
		if p.GetHint() != "" {
			line += " (" + p.GetHint() + ")"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
