package scriptedmodel

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Parse reads a script from YAML or JSON and validates it. Durations are texts such as 200ms.
func Parse(text []byte) (Script, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	var script Script
	switch err := decoder.Decode(&script); {
	case errors.Is(err, io.EOF):
		return Script{}, errors.New("the script is empty")
	case err != nil:
		return Script{}, errors.New(plainYAMLError(err))
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return Script{}, errors.New("the script has more than one document")
	}
	return script, script.Validate()
}

// UnmarshalYAML accepts a mapping as a JSON object, and a string unchanged.
func (a *Arguments) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode && node.Tag == "!!str" {
		*a = Arguments(node.Value)
		return nil
	}
	var value map[string]any
	if err := node.Decode(&value); err != nil {
		return fmt.Errorf("line %d: arguments must be a mapping or a text", node.Line)
	}
	object, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("line %d: arguments cannot be JSON: %w", node.Line, err)
	}
	*a = Arguments(object)
	return nil
}

// unknownField matches the YAML library's error for an unknown field.
var unknownField = regexp.MustCompile(`field (\S+) not found in type \S+`)

// plainYAMLError returns the text of a YAML library error without the names of Go types.
func plainYAMLError(err error) string {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	text = strings.TrimPrefix(text, "unmarshal errors:\n  ")
	return unknownField.ReplaceAllString(text, "unknown field $1")
}
