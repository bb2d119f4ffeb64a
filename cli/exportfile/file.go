package exportfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
)

// version is the version of the form that this package reads and writes.
const version = 1

// header is the comment at the top of a file.
const header = "# What people have set up in a Switchyard fleet, for `switchyard import`. Keep it private: it has digests of tokens.\n"

// File is the content of a file.
type File struct {
	CreatedAt time.Time
	// Key is the key of the secrets, sealed with the pass phrase, or "" if there are none.
	Key   string
	Items []*v1.ExportedItem
	// UnknownKinds are the kinds that Read does not know and left out.
	UnknownKinds []string
}

// document is the form of a file.
type document struct {
	Version   int         `yaml:"version"`
	CreatedAt string      `yaml:"createdAt"`
	Key       string      `yaml:"key,omitempty"`
	Items     []yaml.Node `yaml:"items"`
	Complete  bool        `yaml:"complete"`
}

// entry is the form of an item.
type entry struct {
	Kind string    `yaml:"kind"`
	Name string    `yaml:"name"`
	Spec yaml.Node `yaml:"spec"`
}

// Write writes a file. Its items are in the order of their kinds and names.
func Write(w io.Writer, f File) error {
	doc := document{Version: version, CreatedAt: f.CreatedAt.UTC().Format(time.RFC3339), Key: f.Key, Items: []yaml.Node{}, Complete: true}
	for _, item := range f.Items {
		spec, err := specOf(item)
		if err != nil {
			return fmt.Errorf("write %s %s: %w", item.GetKind(), item.GetName(), err)
		}
		var node yaml.Node
		if err := node.Encode(entry{item.GetKind(), item.GetName(), *spec}); err != nil {
			return fmt.Errorf("write %s %s: %w", item.GetKind(), item.GetName(), err)
		}
		doc.Items = append(doc.Items, node)
	}
	if _, err := io.WriteString(w, header); err != nil {
		return err
	}
	e := yaml.NewEncoder(w)
	e.SetIndent(2)
	return errors.Join(e.Encode(doc), e.Close())
}

// Spec returns the content of an item as Write writes it, for people to compare.
func Spec(item *v1.ExportedItem) (string, error) {
	spec, err := specOf(item)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	e := yaml.NewEncoder(&text)
	e.SetIndent(2)
	err = errors.Join(e.Encode(spec), e.Close())
	return text.String(), err
}

// definitionField holds the definition of a workflow, as people write it.
const definitionField = "definition"

// specOf returns the content of an item as YAML.
func specOf(item *v1.ExportedItem) (*yaml.Node, error) {
	m := item.ProtoReflect()
	field := m.WhichOneof(v1.ExportKinds().Get(0).ContainingOneof())
	if field == nil {
		return nil, errors.New("this program does not know the kind; use the version of the gateway")
	}
	content := proto.Clone(m.Get(field).Message().Interface())
	workflow, _ := content.(*v1.ExportedWorkflow)
	def := workflow.GetDefinition()
	if workflow != nil {
		workflow.Definition = nil
	}
	spec, err := definition.NodeOf(content)
	if err != nil || def == nil {
		return spec, err
	}
	value, err := definition.PrintNode(def)
	if err != nil {
		return nil, err
	}
	spec.Style = 0 // the flow style of an empty mapping
	spec.Content = append(spec.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: definitionField}, value)
	return spec, nil
}

// Read parses a file. name is its name in errors. Items of the kinds in skip are left out. Its error lists the problems of all items.
func Read(name string, data []byte, skip []string) (File, error) {
	var any struct {
		Version  int  `yaml:"version"`
		Complete bool `yaml:"complete"`
	}
	err := yaml.Unmarshal(data, &any)
	switch {
	case any.Version > version:
		return File{}, fmt.Errorf("%s has version %d, and this program reads version %d; use a newer one", name, any.Version, version)
	case err != nil && any.Version == 0 || any.Version < 1:
		return File{}, fmt.Errorf("%s is not a file of `switchyard export`: it does not begin with a version", name)
	case err != nil || !any.Complete:
		return File{}, errors.Join(fmt.Errorf("%s was cut short: it does not end with `complete: true`; export again", name), err)
	}
	var doc document
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(&doc); err != nil {
		return File{}, fmt.Errorf("%s: %w", name, err)
	}
	f := File{Key: doc.Key}
	if f.CreatedAt, err = time.Parse(time.RFC3339, doc.CreatedAt); err != nil {
		return File{}, fmt.Errorf("%s: createdAt: %w", name, err)
	}
	var problems []error
	seen := map[string]bool{}
	for _, node := range doc.Items {
		var e entry
		if err := node.Decode(&e); err != nil {
			problems = append(problems, fmt.Errorf("%s:%d: %w", name, node.Line, err))
			continue
		}
		id := e.Kind + " " + e.Name
		switch field := v1.ExportKinds().ByName(protoreflect.Name(e.Kind)); {
		case field == nil && slices.Contains(f.UnknownKinds, e.Kind):
		case field == nil:
			f.UnknownKinds = append(f.UnknownKinds, e.Kind)
			if !slices.Contains(skip, e.Kind) {
				problems = append(problems, fmt.Errorf("%s:%d: this program does not know the kind %q; use a newer one, or leave these items out with --skip %s", name, node.Line, e.Kind, e.Kind))
			}
		case slices.Contains(skip, e.Kind):
		case seen[id]:
			problems = append(problems, fmt.Errorf("%s:%d: %s is in the file twice", name, node.Line, id))
		default:
			seen[id] = true
			item, err := itemOf(e, field)
			if err != nil {
				problems = append(problems, fmt.Errorf("%s:%d: %s: %w", name, node.Line, id, err))
			}
			f.Items = append(f.Items, item)
		}
	}
	return f, errors.Join(problems...)
}

// itemOf returns the item of an entry. field is the field of its kind, which takes the content.
func itemOf(e entry, field protoreflect.FieldDescriptor) (*v1.ExportedItem, error) {
	item := &v1.ExportedItem{Kind: e.Kind, Name: e.Name}
	content := item.ProtoReflect().NewField(field)
	spec := e.Spec
	var def *v1.Definition
	if _, ok := content.Message().Interface().(*v1.ExportedWorkflow); ok && spec.Kind == yaml.MappingNode {
		spec.Content = slices.Clone(spec.Content)
		for i := 0; i < len(spec.Content); i += 2 {
			if spec.Content[i].Value != definitionField {
				continue
			}
			text, err := yaml.Marshal(spec.Content[i+1])
			if err != nil {
				return nil, err
			}
			if def, err = definition.Parse(definitionField, text); err != nil {
				return nil, err
			}
			spec.Content = slices.Delete(spec.Content, i, i+2)
			break
		}
	}
	var value map[string]any
	if err := spec.Decode(&value); err != nil {
		return nil, fmt.Errorf("spec: %w", err)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("spec: %w", err)
	}
	if err := protojson.Unmarshal(text, content.Message().Interface()); err != nil {
		return nil, fmt.Errorf("spec: %w", err)
	}
	item.ProtoReflect().Set(field, content)
	if def != nil {
		item.GetWorkflow().Definition = def
	}
	return item, nil
}
