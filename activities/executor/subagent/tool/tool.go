package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// WorkDir is the directory in the workspace that the tools of an agent work in.
const WorkDir = "work"

// Tool is a tool that an agent may call. Its methods are safe for concurrent use. A tool that cannot run two calls at
// once makes the second call wait.
type Tool interface {
	// Definition returns the description for the model. It never changes.
	Definition() Definition

	// Call runs the tool and returns the result for the model, including errors of the call. When it returns, nothing
	// of the call still runs. An error is a fault of the node, or that of ctx, and ends the attempt.
	Call(ctx context.Context, call Call) (Outcome, error)
}

// Definition describes a tool to a model.
type Definition struct {
	// Name is unique among the tools of an agent: at most 64 letters, digits, "_" and "-".
	Name string
	// Description explains what the tool does and how to call it.
	Description string
	// Schema is a JSON schema of type object for the arguments.
	Schema json.RawMessage
}

// Call is one call of a tool.
type Call struct {
	// ID is the provider's id of the call, unique in the conversation.
	ID string
	// Arguments is unchecked JSON from the model.
	Arguments json.RawMessage
}

// Outcome is the result of a call, as the model reads it.
type Outcome struct {
	// Text is valid UTF-8.
	Text string
	// IsError marks the call as failed.
	IsError bool
}

// failure returns the outcome of a failed call.
func failure(format string, args ...any) Outcome {
	return Outcome{Text: cleanText(fmt.Sprintf(format, args...)), IsError: true}
}

// cleanText returns text without bytes that JSON, protocol buffers or providers reject.
func cleanText(text string) string {
	return nulRuns.ReplaceAllLiteralString(strings.ToValidUTF8(text, "\uFFFD"), "\uFFFD")
}

var nulRuns = regexp.MustCompile("\x00+")

// parseArguments decodes the arguments of a call. Its error is meant for the model.
func parseArguments(call Call, into any) error {
	raw := call.Arguments
	if len(strings.TrimSpace(string(raw))) == 0 {
		raw = json.RawMessage("{}")
	}
	if err := json.Unmarshal(raw, into); err != nil {
		if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return fmt.Errorf("the argument %q is a %s; it must be a %s", kind.Field, kind.Value, kind.Type)
		}
		return fmt.Errorf("the arguments are not a JSON object: %w", err)
	}
	return nil
}
