package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// WorkDir is the directory below the workspace that the tools of an agent work in.
const WorkDir = "work"

// Tool is something that an agent may call. Its methods may be called from several goroutines at once; a tool that
// cannot work on two calls at once lets the second one wait.
type Tool interface {
	// Definition returns what the model is told of the tool. It never changes.
	Definition() Definition

	// Call runs the tool and returns what the model is to read, errors of the call included. It returns when nothing of
	// the call runs any more. An error is a fault of the node, or that of ctx, and ends the attempt.
	Call(ctx context.Context, call Call) (Outcome, error)
}

// Definition describes a tool to a model.
type Definition struct {
	// Name is unique among the tools of an agent: letters, digits, "_" and "-", at most 64.
	Name string
	// Description says what the tool does and how to call it.
	Description string
	// Schema is a JSON schema of type object that the arguments match.
	Schema json.RawMessage
}

// Call is one call of a tool.
type Call struct {
	// ID is the provider's, unique in the conversation.
	ID string
	// Arguments is JSON by the model. It has not been checked.
	Arguments json.RawMessage
}

// Outcome is what the model reads as the result of a call.
type Outcome struct {
	// Text is valid UTF-8.
	Text string
	// IsError marks the call as failed.
	IsError bool
}

// failure returns the outcome of a call that failed.
func failure(format string, args ...any) Outcome {
	return Outcome{Text: cleanText(fmt.Sprintf(format, args...)), IsError: true}
}

// cleanText returns text without bytes that JSON, protocol buffers or providers refuse.
func cleanText(text string) string {
	return nulRuns.ReplaceAllLiteralString(strings.ToValidUTF8(text, "\uFFFD"), "\uFFFD")
}

var nulRuns = regexp.MustCompile("\x00+")

// parseArguments reads the arguments of a call. Its error is for the model.
func parseArguments(call Call, into any) error {
	raw := call.Arguments
	if len(strings.TrimSpace(string(raw))) == 0 {
		raw = json.RawMessage("{}")
	}
	if err := json.Unmarshal(raw, into); err != nil {
		if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return fmt.Errorf("the argument %q is a %s; it must be a %s", kind.Field, kind.Value, kind.Type)
		}
		return fmt.Errorf("the arguments are no JSON object: %w", err)
	}
	return nil
}
