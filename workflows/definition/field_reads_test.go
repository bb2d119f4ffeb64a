package definition

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
	"google.golang.org/protobuf/reflect/protoreflect"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/nearest"
)

const (
	module = "switchyard/"
	model  = module + "proto/switchyard/v1"
	itself = module + "workflows/definition"
)

// readByName holds the packages that read a spec field by field from its JSON form and not as its message.
var readByName = map[string]protoreflect.Name{
	module + "activities/executor/shell": "ShellSpec",
	module + "activities/taskrunner":     "VpsSpec",
	module + "gateway":                   "VpsSpec",
	module + "workflows/core/flight":     "ApprovalSpec",
}

// checking holds the exported functions of this package that check definitions. A field that only they read has no effect.
var checking = []string{"Parse", "ParseChecked", "Complete", "CompleteChecked", "FromStruct", "References", "Schema", "CertainRuns", "Environments"}

// TestEveryFieldIsRead checks that code that runs workflows reads each field of each message of the language, unless its value
// is written to other fields. fieldScopes has the fields that are refused for some types of tasks.
func TestEveryFieldIsRead(t *testing.T) {
	reads := fieldReads(t)
	for _, message := range modelMessages() {
		for i := range message.Fields().Len() {
			name := message.Fields().Get(i).FullName()
			isWrittenElsewhere := slices.Contains([]protoreflect.Name{"TaskDefaults", "SpecDefaults"}, message.Name()) ||
				slices.Contains([]protoreflect.FullName{"switchyard.v1.Definition.defaults", matrixField}, name)
			if reads[name] == isWrittenElsewhere {
				t.Errorf("%s: read: %v, written to other fields: %v", name, reads[name], isWrittenElsewhere)
			}
		}
	}
}

// fieldReads returns the fields of the model that the code that runs workflows reads, determined by the types of selector
// expressions. In this package, only code that other packages call counts.
func fieldReads(t *testing.T) map[protoreflect.FullName]bool {
	t.Helper()
	found, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
			packages.NeedTypes | packages.NeedTypesSizes | packages.NeedTypesInfo | packages.NeedSyntax,
	}, "../../workflows/...", "../../activities/...", "../../workers/...", "../../gateway/...")
	if err != nil || packages.PrintErrors(found) > 0 {
		t.Fatal(err)
	}
	r := &fieldReader{reads: map[protoreflect.FullName]bool{}, called: map[string]bool{}}
	var own *packages.Package // is read last, when it is known what others call
	for _, p := range found {
		if p.PkgPath == itself {
			own = p
		} else {
			r.read(p)
		}
	}
	r.readOwn(own.Syntax, own.TypesInfo)
	return r.reads
}

// modelMessages returns the messages of the language.
func modelMessages() (messages []protoreflect.MessageDescriptor) {
	for _, file := range []protoreflect.FileDescriptor{v1.File_switchyard_v1_definition_proto, v1.File_switchyard_v1_spec_proto} {
		for i := range file.Messages().Len() {
			messages = append(messages, file.Messages().Get(i))
		}
	}
	return messages
}

type fieldReader struct {
	reads  map[protoreflect.FullName]bool
	called map[string]bool // functions and methods of this package that others call
}

// read records the fields that another package reads, and what it calls of this one.
func (r *fieldReader) read(p *packages.Package) {
	for _, used := range p.TypesInfo.Uses {
		if f, ok := used.(*types.Func); ok && f.Pkg() != nil && f.Pkg().Path() == itself {
			r.called[f.FullName()] = true
		}
	}
	for _, file := range p.Syntax {
		r.readIn(file, p.TypesInfo)
		if message, ok := readByName[p.PkgPath]; ok {
			r.readNames(file, message)
		}
	}
}

// readOwn records the fields read by those functions of this package that others call, and by the functions that these call.
func (r *fieldReader) readOwn(files []*ast.File, info *types.Info) {
	bodies := map[string]ast.Node{}
	var open []string
	for _, file := range files {
		for _, declared := range file.Decls {
			f, ok := declared.(*ast.FuncDecl)
			if !ok {
				continue
			}
			name := info.Defs[f.Name].(*types.Func).FullName()
			bodies[name] = f
			if r.called[name] && !slices.Contains(checking, f.Name.Name) {
				open = append(open, name)
			}
		}
	}
	for seen := map[string]bool{}; len(open) > 0; {
		name := open[len(open)-1]
		open = open[:len(open)-1]
		if seen[name] || bodies[name] == nil {
			continue
		}
		seen[name] = true
		r.readIn(bodies[name], info)
		ast.Inspect(bodies[name], func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				if f, ok := info.Uses[id].(*types.Func); ok {
					open = append(open, f.FullName())
				}
			}
			return true
		})
	}
}

// readIn records the fields whose values are used in a part of a file.
func (r *fieldReader) readIn(part ast.Node, info *types.Info) {
	written := map[ast.Expr]bool{}
	ast.Inspect(part, func(n ast.Node) bool {
		if assigned, ok := n.(*ast.AssignStmt); ok {
			for _, to := range assigned.Lhs {
				written[to] = true
			}
		}
		s, ok := n.(*ast.SelectorExpr)
		if !ok || written[s] || info.Selections[s] == nil {
			return true
		}
		of := info.Selections[s].Recv()
		if pointer, ok := of.Underlying().(*types.Pointer); ok {
			of = pointer.Elem()
		}
		named, ok := of.(*types.Named)
		if !ok || named.Obj().Pkg() == nil || named.Obj().Pkg().Path() != model {
			return true
		}
		for _, message := range modelMessages() {
			if nearest.Fold(string(message.Name())) == nearest.Fold(named.Obj().Name()) {
				r.reads[fieldOf(message, strings.TrimPrefix(s.Sel.Name, "Get"))] = true
			}
		}
		return true
	})
}

// fieldOf returns the name of the field of a message that Go code names, or "".
func fieldOf(message protoreflect.MessageDescriptor, name string) protoreflect.FullName {
	if field := message.Fields().ByJSONName(fieldLike(message, name)); field != nil {
		return field.FullName()
	}
	return ""
}

// readNames records the fields of a message whose JSON names occur as keys or cases in a file.
func (r *fieldReader) readNames(file *ast.File, message protoreflect.Name) {
	fields := v1.File_switchyard_v1_spec_proto.Messages().ByName(message).Fields()
	note := func(e ast.Expr) {
		if literal, ok := e.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			name, err := strconv.Unquote(literal.Value)
			if field := fields.ByJSONName(name); err == nil && field != nil {
				r.reads[field.FullName()] = true
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CaseClause:
			for _, e := range n.List {
				note(e)
			}
		case *ast.IndexExpr:
			note(n.Index)
		}
		return true
	})
}
