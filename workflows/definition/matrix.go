package definition

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
)

// maxCombinations is the most combinations of a matrix, because each becomes an item of the definition.
const maxCombinations = 1000

const matrixField = protoreflect.FullName("switchyard.v1.TaskDefinition.matrix")

// axisName matches a name that an expression can select in an item.
var axisName = lazyPattern(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

// matrixReader turns matrices into lists of their combinations.
type matrixReader struct{ *decoder }

// replaceAll replaces each matrix with the equivalent foreach.
func (r matrixReader) replaceAll(def *v1.Definition) {
	for _, name := range v1.TaskNames(def) {
		task, at := v1.TaskNamed(def, name), taskPath(r.base, def, name)
		matrix, foreach := at.Field("matrix"), at.Field("foreach")
		if r.IsSettled(matrix) {
			r.Settle(foreach)
		}
		if task.GetMatrix() == nil {
			continue
		}
		if list, ok := r.combinations(task.GetMatrix(), matrix); !ok {
			r.Settle(foreach)
		} else if task.GetForeach() != nil || task.GetParallel() != nil {
			r.Add(r.locateKey(matrix), matrix, "matrix, foreach and parallel are mutually exclusive", "a list of objects is a foreach")
		} else {
			task.Foreach = structpb.NewListValue(list)
			r.copyPlace(matrix, foreach)
		}
		task.Matrix = nil
	}
}

// combinations returns the items of a matrix, in the order of the names of its axes; the last axis changes fastest. It returns
// false if it has reported problems.
func (r matrixReader) combinations(matrix *structpb.Struct, p *source.Path) (*structpb.ListValue, bool) {
	before := len(r.Kept) + r.Dropped
	axes := slices.Sorted(maps.Keys(matrix.GetFields()))
	if len(axes) == 0 {
		r.Fail(r.locate(p), p, "matrix is empty", "write named lists: { os: [linux, darwin], arch: [amd64, arm64] }")
	}
	size := 1
	for _, axis := range axes {
		at, values := p.Key(axis), matrix.GetFields()[axis]
		items := values.GetListValue().GetValues()
		switch {
		case axis == "include" || axis == "exclude":
			r.Fail(r.locate(at), at, "a matrix has no "+axis, "write the combinations as a list: foreach: [{ os: linux, arch: amd64 }]")
		case !axisName().MatchString(axis):
			r.Fail(r.locate(at), at, "matrix list name "+source.Quote(axis)+" is not allowed: at most 63 letters, digits and '_', the first not a digit", "")
		case values.GetListValue() == nil:
			r.Fail(r.locate(at), at, at.Local()+" is "+source.ValueNode(values).String()+"; it must be a list", "")
		case len(items) == 0:
			r.Fail(r.locate(at), at, at.Local()+" is empty", "")
		}
		if size = size * len(items); size > maxCombinations {
			r.Fail(r.locate(p), p, fmt.Sprintf("matrix has more than %d combinations", maxCombinations), "let a task make the list, for foreach")
			return nil, false
		}
	}
	if len(r.Kept)+r.Dropped > before {
		return nil, false
	}
	list := &structpb.ListValue{Values: []*structpb.Value{structpb.NewStructValue(&structpb.Struct{})}}
	for _, axis := range axes {
		var longer []*structpb.Value
		for _, item := range list.Values {
			for _, value := range matrix.GetFields()[axis].GetListValue().GetValues() {
				fields := maps.Clone(item.GetStructValue().GetFields())
				if fields == nil {
					fields = map[string]*structpb.Value{}
				}
				fields[axis] = value
				longer = append(longer, structpb.NewStructValue(&structpb.Struct{Fields: fields}))
			}
		}
		list.Values = longer
	}
	return list, true
}
