package definition

import (
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
	"switchyard/workflows/structs"
)

// Checked is a definition that passes every rule.
type Checked struct {
	Definition *v1.Definition
	// Warnings holds problems that are allowed but hardly what the author means.
	Warnings source.Problems
	// Stored holds the places that name a stored workflow, including those in inline definitions.
	Stored []StoredReference
	// Told holds the places that name a target of notifications.
	Told []StoredReference
	// Tolerated holds the first place of each word in `tolerates`.
	Tolerated []StoredReference
	// Schedule is the place of the schedule, or nil if the definition has none.
	Schedule *v1.Problem // without a message
}

// StoredReference is a place that names a stored workflow, the spec of a task of type run, or the target of a notification; or one that names
// what nodes are kept for.
type StoredReference struct {
	Name  string
	Place *v1.Problem // without a message
}

// Parse calls ParseChecked and drops the warnings.
func Parse(file string, data []byte) (*v1.Definition, error) {
	checked, err := ParseChecked(file, data)
	return checked.Definition, err
}

// ParseChecked reads a definition in YAML or JSON and checks it. file names the document in messages. A file that ends in
// ".json" is JSON, and so is any other whose first character is '{', unless it is only valid as YAML.
//
// The error is Problems, in the order of the document. The returned definition is in canonical form: spec fields have their
// JSON names, tasks have their inherited values, the defaults are removed, and Complete accepts it.
func ParseChecked(file string, data []byte) (Checked, error) {
	r := &source.Report{File: file}
	tree := r.Read(data)
	if tree == nil {
		return Checked{}, r.Err()
	}
	d := newDocument(&decoder{Report: r}, new([]StoredReference))
	def, specs := d.read(tree)
	d.check(def, specs)
	return d.checked(def)
}

// Complete calls CompleteChecked and drops the warnings.
func Complete(def *v1.Definition) (*v1.Definition, error) {
	checked, err := CompleteChecked(def)
	return checked.Definition, err
}

// CompleteChecked checks a definition that came as a message, like ParseChecked. It returns a checked copy in canonical form and
// does not modify its argument. Because a message cannot distinguish a zero from a missing value, a zero does not override a
// default. The error is Problems, which have paths but no positions.
func CompleteChecked(def *v1.Definition) (Checked, error) {
	def = proto.CloneOf(def)
	if def == nil {
		def = &v1.Definition{}
	}
	for _, tasks := range []map[string]*v1.TaskDefinition{def.GetTasks(), def.GetFinally()} {
		for name, task := range tasks {
			if task == nil {
				tasks[name] = &v1.TaskDefinition{}
			}
		}
	}
	d := newDocument(&decoder{Report: &source.Report{}}, new([]StoredReference))
	d.check(def, d.complete(def))
	if d.Err() == nil {
		// The values of a message may be what no document can hold, such as NaN or thousands of nested lists.
		text, err := protojson.Marshal(def)
		if err == nil {
			err = structs.CheckJSON(text)
		}
		if err != nil {
			d.Add(source.Position{}, source.Root, "the definition has no form in JSON: "+err.Error(), "")
		}
	}
	return d.checked(def)
}

// FromStruct reads and checks a definition that came as free-form data, such as the inline definition of a task of type run.
// The error is Problems, which have paths but no positions.
func FromStruct(s *structpb.Struct) (*v1.Definition, error) {
	n := source.StructNode(s)
	if n == nil {
		n = &source.Node{Style: source.FromMessage}
	}
	d := newDocument(&decoder{Report: &source.Report{}}, new([]StoredReference))
	def, specs := d.read(n)
	d.check(def, specs)
	if err := d.Err(); err != nil {
		return nil, err
	}
	return def, nil
}
