package model

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// maxBroken bounds how much a call keeps of arguments that are not a JSON object.
const maxBroken = 4 << 10

// noArguments is the value of a call without arguments.
var noArguments = json.RawMessage("{}")

// parseArguments returns the arguments that a model wrote. If they are not a JSON object, broken holds the original
// text. For a call without arguments, models write nothing or null.
func parseArguments(text string) (arguments json.RawMessage, broken string) {
	trimmed := strings.TrimSpace(text)
	if trimmed == "" || trimmed == "null" {
		return noArguments, ""
	}
	var object map[string]json.RawMessage
	var compact bytes.Buffer
	if json.Unmarshal([]byte(trimmed), &object) == nil && json.Compact(&compact, []byte(trimmed)) == nil {
		return compact.Bytes(), ""
	}
	return noArguments, cut(text, maxBroken)
}

// cut returns the beginning of a text that is too long, without splitting a character.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// wireArguments returns the arguments of a call as a JSON object, even if the call did not come from a client of New.
func wireArguments(c *Call) json.RawMessage {
	if arguments, broken := parseArguments(string(c.Arguments)); broken == "" {
		return arguments
	}
	return noArguments
}

// wireName returns a tool name that providers accept. A model may call a tool by an invalid name, and a provider then
// rejects the whole conversation.
func wireName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '_'
	}, name)
	if name == "" {
		return "_"
	}
	return name[:min(len(name), 64)]
}

// wireSchema returns the members of a tool's schema, completed with those that providers require of every tool.
func wireSchema(t Tool) (map[string]any, error) {
	members := map[string]any{}
	if len(t.Schema) > 0 {
		var raw map[string]json.RawMessage
		if err := json.Unmarshal(t.Schema, &raw); err != nil {
			return nil, &schemaError{t.Name, err}
		}
		for name, value := range raw {
			members[name] = value // numbers keep their digits
		}
	}
	if members["type"] == nil {
		members["type"] = "object"
	}
	if members["properties"] == nil {
		members["properties"] = map[string]any{}
	}
	return members, nil
}

// schemaError reports a schema that is not a JSON object.
type schemaError struct {
	tool string
	err  error
}

func (e *schemaError) Error() string {
	return "the schema of tool " + e.tool + " is not a JSON object: " + e.err.Error()
}
