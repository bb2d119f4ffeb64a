package definition

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
)

// printFirst and printLast are the fields of definitions and tasks that are printed out of their proto order, so that the
// fields that people look for first are at the top.
var (
	printFirst = []string{"name", "description", "type", "dependsOn", "when", "condition"}
	printLast  = []string{"inputs", "tasks", "finally"}
)

// Print returns a definition as YAML that ParseChecked reads back. Tasks come after the tasks that they depend on.
func Print(def *v1.Definition) ([]byte, error) {
	root, err := PrintNode(def)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := errors.Join(e.Encode(root), e.Close()); err != nil {
		return nil, fmt.Errorf("write the definition: %w", err)
	}
	return out.Bytes(), nil
}

// PrintNode returns a definition as the YAML value that Print writes.
func PrintNode(def *v1.Definition) (*yaml.Node, error) {
	root, err := NodeOf(def)
	if err != nil {
		return nil, fmt.Errorf("encode the definition: %w", err)
	}
	arrangeFields(root, nil)
	for name, value := range pairsOf(root) {
		if name == "tasks" || name == "finally" {
			arrangeFields(value, inOrder(def))
			for _, task := range pairsOf(value) {
				arrangeFields(task, nil)
			}
		}
	}
	return root, nil
}

// NodeOf returns a message as a YAML value for people, from which the same message is read.
func NodeOf(m proto.Message) (*yaml.Node, error) {
	text, err := protojson.Marshal(m)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return printedNode(d)
}

// inOrder returns the names of the tasks with parents before children, and by name within one level.
func inOrder(def *v1.Definition) []string {
	levels := make(map[string]int, v1.CountTasks(def))
	var levelOf func(name string) int
	levelOf = func(name string) int {
		task := v1.TaskNamed(def, name)
		if level, ok := levels[name]; ok || task == nil {
			return level
		}
		levels[name] = 0 // ends a cycle, which no checked definition has
		level := 0
		for _, parent := range task.GetDependsOn() {
			level = max(level, 1+levelOf(parent))
		}
		levels[name] = level
		return level
	}
	ordered := v1.TaskNames(def)
	slices.SortStableFunc(ordered, func(a, b string) int { return levelOf(a) - levelOf(b) })
	return ordered
}

// arrangeFields sorts the pairs of a mapping by the given names, or in the printing order of fields if order is nil.
func arrangeFields(mapping *yaml.Node, order []string) {
	if order == nil {
		order = printFirst
	}
	rank := make(map[string]int, len(order))
	for i, name := range order {
		rank[name] = i - len(order) // before those without a rank
	}
	for i, name := range printLast {
		if _, ok := rank[name]; !ok {
			rank[name] = 1 + i
		}
	}
	pairs := slices.Collect(slices.Chunk(mapping.Content, 2))
	slices.SortStableFunc(pairs, func(a, b []*yaml.Node) int { return rank[a[0].Value] - rank[b[0].Value] })
	mapping.Content = slices.Concat(pairs...)
}

// pairsOf yields the names and values of a mapping.
func pairsOf(mapping *yaml.Node) func(yield func(string, *yaml.Node) bool) {
	return func(yield func(string, *yaml.Node) bool) {
		for pair := range slices.Chunk(mapping.Content, 2) {
			if !yield(pair[0].Value, pair[1]) {
				return
			}
		}
	}
}

// printedNode returns the next value of a JSON text as a YAML node.
func printedNode(d *json.Decoder) (*yaml.Node, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch v := token.(type) {
	case json.Delim:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		if v == '{' {
			n.Kind = yaml.MappingNode
		}
		for d.More() {
			child, err := printedNode(d)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, child)
		}
		if _, err := d.Token(); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if len(n.Content) == 0 || n.Kind == yaml.SequenceNode && isShortList(n.Content) {
			n.Style = yaml.FlowStyle
		}
		return n, nil
	case string:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: v, Style: textStyle(v)}, nil
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: v.String()}, nil
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(v)}, nil
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: "null"}, nil
}

// maxShortList is the longest list that is printed on one line, in characters.
const maxShortList = 60

// isShortList reports whether a list of names and numbers fits on a line.
func isShortList(items []*yaml.Node) bool {
	size := 0
	for _, item := range items {
		if size += len(item.Value) + 2; size > maxShortList || item.Kind != yaml.ScalarNode || item.Style == yaml.LiteralStyle {
			return false
		}
	}
	return true
}

var (
	// plainWords matches texts that need no quotes in YAML.
	plainWords = regexp.MustCompile(`^[A-Za-z_/][A-Za-z0-9_./@=+ $(){}|&;<>-]*$`)
	// blockLines matches texts that a literal block can hold unchanged.
	blockLines = regexp.MustCompile(`^[^\s\pC][^\pC]*(\n[^\pC]*)*\n?$`)
	blankEnd   = regexp.MustCompile(`[ \t](\n|$)|\n\n$`)
	// otherScalars matches words that some version of YAML takes for something other than a text.
	otherScalars = regexp.MustCompile(`(?i)^(y|yes|n|no|on|off|true|false|null|_+|[._].*)$`)
)

// textStyle returns a style in which a text is read back unchanged.
func textStyle(text string) yaml.Style {
	switch {
	case strings.Contains(text, "\n") && blockLines.MatchString(text) && !blankEnd.MatchString(text):
		return yaml.LiteralStyle
	case plainWords.MatchString(text) && !otherScalars.MatchString(text) && !strings.HasSuffix(text, " "):
		return 0
	}
	return yaml.DoubleQuotedStyle
}
