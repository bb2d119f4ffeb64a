package definition

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
)

// Bounds of a document. They keep the work for any input far below a second
// and its memory below a few hundred MiB.
const (
	maxBytes = 1 << 20
	maxDepth = 64
	// maxAliased bounds the values that YAML aliases stand for; without it a
	// document of 1 KiB can stand for more values than there is memory.
	maxAliased = 100_000
)

// Parse reads a definition in YAML or JSON and checks it. file names the
// document in messages; one that ends in ".json" is JSON, and so is any other
// whose first character is '{', unless it only makes sense as YAML.
//
// The error is Problems, in the order of the document. The definition that is
// returned is in canonical form: spec fields have their JSON names, tasks have
// what they inherit of the defaults, of which there are none any more, and
// everything in it passes Check.
func Parse(file string, data []byte) (*v1.Definition, error) {
	r := &report{file: file}
	tree := r.read(data)
	if tree == nil {
		return nil, r.err()
	}
	d := &decoder{report: r}
	def, specs := d.definition(tree)
	d.check(def, specs)
	if err := r.err(); err != nil {
		return nil, err
	}
	return def, nil
}

// Complete does with a definition that came as a message what Parse does with a
// document: it returns it checked and in canonical form, and changes nothing of
// the one that it is given. A zero in a message cannot be told from nothing, so
// that it does not keep a default away. The error is Problems, which have paths
// but no positions.
func Complete(def *v1.Definition) (*v1.Definition, error) {
	def = proto.CloneOf(def)
	if def == nil {
		def = &v1.Definition{}
	}
	for name, task := range def.GetTasks() {
		if task == nil {
			def.Tasks[name] = &v1.TaskDefinition{}
		}
	}
	d := &decoder{report: &report{}}
	d.check(def, d.complete(def))
	if err := d.err(); err != nil {
		return nil, err
	}
	return def, nil
}

// Check reports whether Complete takes a definition.
func Check(def *v1.Definition) error {
	_, err := Complete(def)
	return err
}

// FromStruct does with a definition that came as free-form data what Parse does
// with a document: the inline definition of a task of type run is one. The
// error is Problems, which have paths but no positions.
func FromStruct(s *structpb.Struct) (*v1.Definition, error) {
	n := structNode(s)
	if n == nil {
		n = &node{style: fromMessage}
	}
	d := &decoder{report: &report{}}
	def, specs := d.definition(n)
	d.check(def, specs)
	if err := d.err(); err != nil {
		return nil, err
	}
	return def, nil
}

// read turns the document into a tree; nil when there is none to speak of, and
// then the report says why.
func (r *report) read(data []byte) *node {
	if len(data) > maxBytes {
		r.add(position{1, 1}, root, "the document is larger than 1 MiB", "split the workflow, or move data out of it")
		return nil
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	blank := len(bytes.TrimSpace(data)) == 0
	isJSON := !blank && r.isJSON(data)
	r.text = newText(data, !isJSON)
	if at, ok := r.text.invalidUTF8(); ok {
		r.add(at, root, "the document is not valid UTF-8", "save it as UTF-8")
		return nil
	}
	if blank {
		r.addEmpty()
		return nil
	}
	if isJSON {
		return r.readJSON(data)
	}
	return r.readYAML(data)
}

func (r *report) addEmpty() {
	r.add(position{1, 1}, root, "the document is empty", "a definition has a name and tasks")
}

func (r *report) isJSON(data []byte) bool {
	extension := strings.ToLower(filepath.Ext(r.file))
	switch {
	case extension == ".json":
		return true
	case bytes.TrimSpace(data)[0] != '{':
		return false
	}
	// A YAML flow mapping begins with a brace too.
	return extension != ".yaml" && extension != ".yml" || json.Valid(data)
}
