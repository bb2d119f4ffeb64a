package model

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// maxBroken bounds what a call keeps of arguments that are no JSON object.
const maxBroken = 4 << 10

// noArguments is what a call without arguments has.
var noArguments = json.RawMessage("{}")

// parseArguments returns the arguments that a model wrote, and what it wrote if that is no JSON object. Models write
// nothing or null for a call without arguments.
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

// cut returns the beginning of a text that is too long, in whole characters.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// wireArguments returns arguments as a JSON object, also for a call that was made without New's clients.
func wireArguments(c *Call) json.RawMessage {
	if arguments, broken := parseArguments(string(c.Arguments)); broken == "" {
		return arguments
	}
	return noArguments
}

// wireName returns a name of a tool that providers accept. A model may call a tool whose name no tool can have, and a
// provider refuses the whole conversation then.
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

// wireSchema returns the members of a tool's schema, with those that providers require of every tool.
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

// schemaError is a schema that is no JSON object.
type schemaError struct {
	tool string
	err  error
}

func (e *schemaError) Error() string {
	return "the schema of tool " + e.tool + " is not a JSON object: " + e.err.Error()
}
