package definition

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	v1 "switchyard/proto/switchyard/v1"
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
var checking = []string{"Parse", "ParseChecked", "Complete", "CompleteChecked", "Check", "FromStruct", "References", "Schema", "CertainRuns"}

// listed is a package as `go list` describes it.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// fieldReads returns the fields of the model that the code that runs workflows reads, determined by the types of selector
// expressions. In this package, only code that other packages call counts.
func fieldReads(t *testing.T) map[protoreflect.FullName]bool {
	t.Helper()
	c := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles",
		"../../workflows/...", "../../activities/...", "../../workers/...", "../../gateway/...")
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	exports := map[string]string{}
	var packages []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
		if strings.HasPrefix(p.ImportPath, module) && !strings.HasPrefix(p.ImportPath, module+"proto") {
			packages = append(packages, p)
		}
	}
	r := &fieldReader{
		fset: token.NewFileSet(), names: modelNames(t), reads: map[protoreflect.FullName]bool{}, called: map[string]bool{},
	}
	r.importer = importer.ForCompiler(r.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	slices.SortStableFunc(packages, func(a, b listed) int { // this package comes last, when it is known what others call
		return strings.Compare(strconv.FormatBool(a.ImportPath == itself), strconv.FormatBool(b.ImportPath == itself))
	})
	for _, p := range packages {
		if err := r.read(p); err != nil {
			t.Fatalf("%s: %v", p.ImportPath, err)
		}
	}
	return r.reads
}

// modelNames maps the Go type and field names of the model to its fields.
func modelNames(t *testing.T) map[[2]string]protoreflect.FullName {
	names := map[[2]string]protoreflect.FullName{}
	for _, file := range []protoreflect.FileDescriptor{v1.File_switchyard_v1_definition_proto, v1.File_switchyard_v1_spec_proto} {
		for i := range file.Messages().Len() {
			message := file.Messages().Get(i)
			found, err := protoregistry.GlobalTypes.FindMessageByName(message.FullName())
			if err != nil {
				t.Fatal(err)
			}
			goType := reflect.TypeOf(proto.Message(found.Zero().Interface())).Elem()
			for k := range goType.NumField() {
				field := goType.Field(k)
				for part := range strings.SplitSeq(field.Tag.Get("protobuf"), ",") {
					if name, ok := strings.CutPrefix(part, "name="); ok {
						names[[2]string{goType.Name(), field.Name}] = message.FullName().Append(protoreflect.Name(name))
					}
				}
			}
		}
	}
	return names
}

type fieldReader struct {
	fset     *token.FileSet
	importer types.Importer
	names    map[[2]string]protoreflect.FullName
	reads    map[protoreflect.FullName]bool
	called   map[string]bool // functions and methods of this package that others call
}

// read records the fields that a package reads.
func (r *fieldReader) read(p listed) error {
	var files []*ast.File
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(r.fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, file)
	}
	info := &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	if _, err := (&types.Config{Importer: r.importer}).Check(p.ImportPath, r.fset, files, info); err != nil {
		return err
	}
	if p.ImportPath == itself {
		r.readOwn(files, info)
		return nil
	}
	for _, used := range info.Uses {
		if f, ok := used.(*types.Func); ok && f.Pkg() != nil && f.Pkg().Path() == itself {
			r.called[f.FullName()] = true
		}
	}
	for _, file := range files {
		r.readIn(file, info)
		if message, ok := readByName[p.ImportPath]; ok {
			r.readNames(file, message)
		}
	}
	return nil
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
		if field, ok := r.names[[2]string{named.Obj().Name(), strings.TrimPrefix(s.Sel.Name, "Get")}]; ok {
			r.reads[field] = true
		}
		return true
	})
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
