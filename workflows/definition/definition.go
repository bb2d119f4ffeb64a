package definition

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
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
	r := &source.Report{File: file}
	tree := r.Read(data)
	if tree == nil {
		return nil, r.Err()
	}
	d := &decoder{Report: r}
	def, specs := d.definition(tree)
	d.check(def, specs)
	if err := r.Err(); err != nil {
		return nil, err
	}
	return def, nil
}

// Complete does with a definition that came as a message what Parse does with a
// document: it returns it checked and in canonical form, and changes nothing of
// the one that it is given. A zero in a message cannot be distinguished from nothing, so
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
	d := &decoder{Report: &source.Report{}}
	d.check(def, d.complete(def))
	if err := d.Err(); err != nil {
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
	n := source.StructNode(s)
	if n == nil {
		n = &source.Node{Style: source.FromMessage}
	}
	d := &decoder{Report: &source.Report{}}
	def, specs := d.definition(n)
	d.check(def, specs)
	if err := d.Err(); err != nil {
		return nil, err
	}
	return def, nil
}
