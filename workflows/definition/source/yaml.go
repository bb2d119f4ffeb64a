package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// readYAML parses a YAML document, or returns nil if it is invalid.
func (r *Report) readYAML(data []byte) *Node {
	document, err := decodeYAML(bytes.NewReader(data))
	if err != nil {
		r.addYAMLError(data, err)
		return nil
	}
	if document == nil {
		r.addEmpty()
		return nil
	}
	y := &yamlReader{Report: r, open: map[*yaml.Node]bool{}}
	tree := y.read(document.Content[0], Root, 1)
	switch {
	case y.stopped:
		return nil
	case tree.Kind == Null:
		r.addEmpty()
		return nil
	}
	return tree
}

// errSecondDocument means that another document follows. line is its first line.
type errSecondDocument struct{ line int }

func (e errSecondDocument) Error() string { return "second document" }

// decodeYAML returns the document node, or nil for an empty document.
func decodeYAML(in io.Reader) (document *yaml.Node, err error) {
	// The library indexes its buffers by hand. A bug there must remain a problem of the document and not end a process that
	// also serves other users.
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

// yamlReader converts the library's nodes to ours and expands aliases and merge keys.
type yamlReader struct {
	*Report
	open    map[*yaml.Node]bool // anchors whose aliases are being expanded
	outer   *yaml.Node          // outermost alias that is being expanded
	aliased int                 // number of values expanded from aliases so far
	stopped bool                // a limit was exceeded, and the tree is useless
}

// stop reports that a limit was exceeded.
func (y *yamlReader) stop(n *yaml.Node, p *Path, message, hint string) *Node {
	if !y.stopped {
		y.Add(Position{n.Line, n.Column}, p, message, hint)
	}
	y.stopped = true
	return &Node{}
}

func (y *yamlReader) read(n *yaml.Node, p *Path, depth int) *Node {
	at := Position{n.Line, n.Column}
	switch {
	case y.stopped:
		return &Node{}
	case depth > maxDepth:
		return y.stop(n, p, tooDeep, "")
	case len(y.open) > 0:
		if y.aliased++; y.aliased > maxAliased {
			return y.stop(y.outer, p, fmt.Sprintf("aliases expand to more than %d values", maxAliased), "write the values out or nest fewer aliases")
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
		list := &Node{Kind: Sequence, At: at}
		for i, item := range n.Content {
			list.Items = append(list.Items, y.read(item, p.Item(i), depth+1))
		}
		y.checkTag(n, p, "!!seq")
		return list
	case yaml.MappingNode:
		tree := y.readMapping(n, p, depth)
		y.checkTag(n, p, "!!map")
		return tree
	}
	return y.readScalar(n, p)
}

func (y *yamlReader) checkTag(n *yaml.Node, p *Path, want string) {
	if tag := n.ShortTag(); tag != want && tag != "!" {
		y.Fail(Position{n.Line, n.Column}, p, "tag "+Quote(tag)+" is not supported here", "leave the tag out")
	}
}

// readMapping reads the entries of a mapping. Entries from merge keys (<<) follow, unless the mapping has the same key.
func (y *yamlReader) readMapping(n *yaml.Node, p *Path, depth int) *Node {
	m := &Node{Kind: Mapping, At: Position{n.Line, n.Column}}
	seen := make(map[string]Position, len(n.Content)/2)
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge" {
			merges = append(merges, value)
			continue
		}
		at := Position{key.Line, key.Column}
		for key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!null" {
			y.Add(at, p, "a key must be a word", "")
			continue
		}
		if before, twice := seen[key.Value]; twice {
			y.addDuplicate(at, p.Key(key.Value), before)
			continue
		}
		seen[key.Value] = at
		m.Entries = append(m.Entries, Entry{key.Value, at, y.read(value, p.Key(key.Value), depth+1)})
	}
	for _, merge := range merges {
		for _, e := range y.readMerge(merge, p, depth).Entries {
			if _, there := seen[e.Key]; !there {
				seen[e.Key] = e.At
				m.Entries = append(m.Entries, e)
			}
		}
	}
	return m
}

// readMerge reads the value of a merge key: a mapping or a list of mappings. The first mapping with a key takes precedence.
func (y *yamlReader) readMerge(n *yaml.Node, p *Path, depth int) *Node {
	value := y.read(n, p.Key("<<"), depth+1)
	all := &Node{Kind: Mapping}
	parts := []*Node{value}
	if value.Kind == Sequence {
		parts = value.Items
	}
	for _, part := range parts {
		if part.Kind != Mapping {
			if !y.stopped {
				y.Add(part.At, p.Key("<<"), "<< takes a mapping or a list of mappings; this is "+part.String(), "")
			}
			continue
		}
		all.Entries = append(all.Entries, part.Entries...)
	}
	return all
}

func (y *yamlReader) readScalar(n *yaml.Node, p *Path) *Node {
	s := &Node{Kind: Str, At: Position{n.Line, n.Column}, Text: n.Value, Style: yamlStyle(n)}
	switch tag := n.ShortTag(); tag {
	case "!!str", "!!timestamp", "!!merge", "!":
	case "!!null":
		s.Kind = Null
	case "!!bool":
		s.Kind = Boolean
		if err := n.Decode(&s.Truth); err != nil {
			y.Fail(s.At, p, Quote(n.Value)+" is neither true nor false", "")
		}
	case "!!int", "!!float":
		s.Kind = Number
		var value any
		if err := n.Decode(&value); err != nil {
			y.Fail(s.At, p, Quote(n.Value)+" is not a number", "")
			break
		}
		switch value := value.(type) {
		case float64:
			s.Value, s.Decimal = value, strings.ReplaceAll(n.Value, "_", "")
		default: // an integer, which may be written in hexadecimal
			s.Decimal = fmt.Sprint(value)
			s.Value, _ = strconv.ParseFloat(s.Decimal, 64)
		}
	default:
		y.Fail(s.At, p, "tag "+Quote(tag)+" is not supported", "leave the tag out")
	}
	return s
}

func yamlStyle(n *yaml.Node) Style {
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
