package definition

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"

	"go.yaml.in/yaml/v3"
)

// readYAML parses a YAML document; nil when it is none.
func (r *report) readYAML(data []byte) *node {
	document, err := decodeYAML(bytes.NewReader(data))
	if err != nil {
		r.addYAMLError(data, err)
		return nil
	}
	if document == nil {
		r.addEmpty()
		return nil
	}
	y := &yamlReader{report: r, open: map[*yaml.Node]bool{}}
	tree := y.read(document.Content[0], root, 1)
	switch {
	case y.stopped:
		return nil
	case tree.kind == null:
		r.addEmpty()
		return nil
	}
	return tree
}

// errSecondDocument says that another document follows; line is where it begins.
type errSecondDocument struct{ line int }

func (e errSecondDocument) Error() string { return "second document" }

// decodeYAML returns the document node, nil for an empty document.
func decodeYAML(in io.Reader) (document *yaml.Node, err error) {
	// The library indexes its buffers by hand. A slip there must stay a problem
	// of the document and not end a process that serves other people as well.
	defer func() {
		if cause := recover(); cause != nil {
			document, err = nil, fmt.Errorf("yaml: the parser cannot read this document: %v", cause)
		}
	}()
	decoder := yaml.NewDecoder(in)
	var first, second yaml.Node
	switch err := decoder.Decode(&first); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, err
	}
	switch err := decoder.Decode(&second); {
	case errors.Is(err, io.EOF):
		return &first, nil
	case err != nil:
		return nil, err
	}
	return nil, errSecondDocument{second.Line}
}

// yamlReader turns the library's nodes into ours, with aliases and merge keys expanded.
type yamlReader struct {
	*report
	open    map[*yaml.Node]bool // anchors whose alias is being expanded
	outer   *yaml.Node          // outermost alias that is being expanded
	aliased int                 // values made by aliases so far
	stopped bool                // a bound was hit; the tree is of no use
}

// stop reports that a bound was hit.
func (y *yamlReader) stop(n *yaml.Node, p *path, message, hint string) *node {
	if !y.stopped {
		y.add(position{n.Line, n.Column}, p, message, hint)
	}
	y.stopped = true
	return &node{}
}

func (y *yamlReader) read(n *yaml.Node, p *path, depth int) *node {
	at := position{n.Line, n.Column}
	switch {
	case y.stopped:
		return &node{}
	case depth > maxDepth:
		return y.stop(n, p, tooDeep, "")
	case len(y.open) > 0:
		if y.aliased++; y.aliased > maxAliased {
			return y.stop(y.outer, p, fmt.Sprintf("aliases stand for more than %d values", maxAliased), "write the values out, or use fewer aliases within aliases")
		}
	}
	switch n.Kind {
	case yaml.AliasNode:
		if y.open[n.Alias] {
			return y.stop(n, p, "alias *"+n.Value+" contains itself", "")
		}
		if len(y.open) == 0 {
			y.outer = n
		}
		y.open[n.Alias] = true
		tree := y.read(n.Alias, p, depth)
		delete(y.open, n.Alias)
		return tree
	case yaml.SequenceNode:
		y.checkTag(n, p, "!!seq")
		list := &node{kind: sequence, at: at}
		for i, item := range n.Content {
			list.items = append(list.items, y.read(item, p.item(i), depth+1))
		}
		return list
	case yaml.MappingNode:
		y.checkTag(n, p, "!!map")
		return y.readMapping(n, p, depth)
	}
	return y.readScalar(n, p)
}

func (y *yamlReader) checkTag(n *yaml.Node, p *path, want string) {
	if tag := n.ShortTag(); tag != want && tag != "!" {
		y.fail(position{n.Line, n.Column}, p, "tag "+quote(tag)+" is not supported here", "leave the tag out")
	}
}

// readMapping reads the entries of a mapping; those that come by merge keys
// (<<) follow, where they are not there already.
func (y *yamlReader) readMapping(n *yaml.Node, p *path, depth int) *node {
	m := &node{kind: mapping, at: position{n.Line, n.Column}}
	seen := make(map[string]position, len(n.Content)/2)
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge" {
			merges = append(merges, value)
			continue
		}
		at := position{key.Line, key.Column}
		for key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!null" {
			y.add(at, p, "a key must be a word", "")
			continue
		}
		if before, twice := seen[key.Value]; twice {
			y.addDuplicate(at, p.key(key.Value), before)
			continue
		}
		seen[key.Value] = at
		m.entries = append(m.entries, entry{key.Value, at, y.read(value, p.key(key.Value), depth+1)})
	}
	for _, merge := range merges {
		for _, e := range y.readMerge(merge, p, depth).entries {
			if _, there := seen[e.key]; !there {
				seen[e.key] = e.at
				m.entries = append(m.entries, e)
			}
		}
	}
	return m
}

// readMerge reads the value of a merge key: a mapping or a list of mappings, of
// which the first that has a key wins.
func (y *yamlReader) readMerge(n *yaml.Node, p *path, depth int) *node {
	value := y.read(n, p.key("<<"), depth+1)
	all := &node{kind: mapping}
	parts := []*node{value}
	if value.kind == sequence {
		parts = value.items
	}
	for _, part := range parts {
		if part.kind != mapping {
			if !y.stopped {
				y.add(part.at, p.key("<<"), "<< takes a mapping or a list of mappings; this is "+part.String(), "")
			}
			continue
		}
		all.entries = append(all.entries, part.entries...)
	}
	return all
}

func (y *yamlReader) readScalar(n *yaml.Node, p *path) *node {
	s := &node{kind: str, at: position{n.Line, n.Column}, text: n.Value, style: yamlStyle(n)}
	switch tag := n.ShortTag(); tag {
	case "!!str", "!!timestamp", "!!merge", "!":
	case "!!null":
		s.kind = null
	case "!!bool":
		s.kind = boolean
		if err := n.Decode(&s.truth); err != nil {
			y.fail(s.at, p, quote(n.Value)+" is neither true nor false", "")
		}
	case "!!int", "!!float":
		s.kind = number
		var value any
		if err := n.Decode(&value); err != nil {
			y.fail(s.at, p, quote(n.Value)+" is not a number", "")
			break
		}
		s.whole = tag == "!!int"
		switch value := value.(type) {
		case int:
			s.value = float64(value)
		case int64:
			s.value = float64(value)
		case uint64:
			s.value = float64(value)
		case float64:
			s.value = value
		default:
			s.value = math.NaN()
		}
	default:
		y.fail(s.at, p, "tag "+quote(tag)+" is not supported", "leave the tag out")
	}
	return s
}

func yamlStyle(n *yaml.Node) style {
	switch {
	case n.Style&yaml.DoubleQuotedStyle != 0:
		return doubleQuoted
	case n.Style&yaml.SingleQuotedStyle != 0:
		return singleQuoted
	case n.Style&yaml.LiteralStyle != 0:
		return literal
	case n.Style&yaml.FoldedStyle != 0:
		return folded
	}
	return plain
}
