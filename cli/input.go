package cli

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
)

// parseInput reads "key=value" pairs. A value that is JSON is taken as that, any
// other as a text.
func parseInput(pairs []string) (*structpb.Struct, error) {
	if len(pairs) == 0 {
		return nil, nil
	}
	fields := map[string]any{}
	for _, pair := range pairs {
		key, text, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, usageError("--input %q: write key=value", pair)
		}
		if _, twice := fields[key]; twice {
			return nil, usageError("--input %s is given twice", key)
		}
		fields[key] = parseValue(text)
	}
	input, err := structpb.NewStruct(fields)
	if err != nil {
		return nil, usageError("--input: %w", err)
	}
	return input, nil
}

func parseValue(text string) any {
	var value any
	if json.Unmarshal([]byte(text), &value) != nil || !exact(text) {
		return text
	}
	return value
}

// exact says that no number in a JSON text is an integer that a float64, which
// numbers become, would change: ids must not be rounded.
func exact(text string) bool {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	for {
		token, err := d.Token()
		if err != nil {
			return true
		}
		n, ok := token.(json.Number)
		if !ok || strings.ContainsAny(n.String(), ".eE") {
			continue
		}
		if f, err := n.Float64(); err != nil || strconv.FormatFloat(f, 'f', -1, 64) != n.String() && n.String() != "-0" {
			return false
		}
	}
}

// parsePairs reads the "key=value" pairs of a flag as texts.
func parsePairs(flag string, pairs []string) (map[string]string, error) {
	fields := map[string]string{}
	for _, pair := range pairs {
		key, text, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, usageError("--%s %q: write key=value", flag, pair)
		}
		fields[key] = text
	}
	return fields, nil
}
