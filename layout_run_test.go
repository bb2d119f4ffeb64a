package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"
	"testing"

	gopackages "golang.org/x/tools/go/packages"
)

// view is the package with what people see of a run. A run tells the view what has happened, and decides nothing by it.
const view = "switchyard/workflows/view"

// viewSetters are the functions and methods of the view by which a run tells it what has happened.
var viewSetters = []string{
	"New", "Restore", "RestoreRun",
	"AddInstances", "End", "EndAttempt", "SetApproval", "SetContext", "SetPausedBy", "SetProblem", "SetRetryTime", "SetRunState", "SetSlotWait",
	"SetStartedAt", "SetSteeredBy", "Touch", "Update",
}

// viewProjections are the methods and fields of the view for what goes to people: in answers, events, error messages and reports,
// and in the state from which the view of the next execution is restored.
var viewProjections = []string{
	"Answer", "Final", "Instances", "Save",
}

// TestRunDoesNotReadTheView checks that workflows/run uses exactly these names of the view.
func TestRunDoesNotReadTheView(t *testing.T) {
	pkg := loadRun(t)
	allowed, used := slices.Concat(viewSetters, viewProjections), viewNames(pkg.TypesInfo)
	for _, name := range used {
		if !slices.Contains(allowed, name) {
			t.Errorf("workflows/run uses %s.%s, which neither tells the view something nor goes to people", view, name)
		}
	}
	for _, name := range allowed {
		if !slices.Contains(used, name) {
			t.Errorf("workflows/run no longer uses %s.%s", view, name)
		}
	}
}

// loadRun returns the package workflows/run with its types.
func loadRun(t *testing.T) *gopackages.Package {
	t.Helper()
	found, err := gopackages.Load(&gopackages.Config{
		Mode: gopackages.NeedName | gopackages.NeedFiles | gopackages.NeedCompiledGoFiles | gopackages.NeedImports |
			gopackages.NeedTypes | gopackages.NeedTypesSizes | gopackages.NeedTypesInfo | gopackages.NeedSyntax,
	}, "./workflows/run")
	if err != nil {
		t.Fatal(err)
	}
	if gopackages.PrintErrors(found) > 0 {
		t.FailNow()
	}
	return found[0]
}

// viewNames returns the functions, methods and fields of the view that code uses, in order.
func viewNames(info *types.Info) []string {
	found := map[string]bool{}
	for _, used := range info.Uses {
		if _, isType := used.(*types.TypeName); !isType && used.Pkg() != nil && used.Pkg().Path() == view {
			found[used.Name()] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// The check sees a getter, a field that is embedded and a function, and no type.
func TestViewNamesAreFound(t *testing.T) {
	check := func(path, text string, imported *types.Package) (*types.Package, *types.Info) {
		t.Helper()
		fset, info := token.NewFileSet(), &types.Info{Uses: map[*ast.Ident]types.Object{}}
		file, err := parser.ParseFile(fset, path+".go", text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		pkg, err := (&types.Config{Importer: onePackage{imported}}).Check(path, fset, []*ast.File{file}, info)
		if err != nil {
			t.Fatal(err)
		}
		return pkg, info
	}
	seen, _ := check(view, `package view
type table struct{ Revision int }
type Status struct{ table }
func (s *Status) State(i int) string { return "" }
func (s *Status) Touch(i int) {}
func Ended(s *Status) bool { return true }`, nil)
	_, info := check("switchyard/workflows/run", `package run
import "switchyard/workflows/view"
type run struct{ status *view.Status }
func (r *run) decide() bool {
	return r.status.State(0) == "" && r.status.Revision > 1 && view.Ended(r.status)
}`, seen)
	if got, want := viewNames(info), []string{"Ended", "Revision", "State"}; !slices.Equal(got, want) {
		t.Errorf("the run uses %v, want %v", got, want)
	}
}

// onePackage is an importer of one package.
type onePackage struct{ pkg *types.Package }

func (p onePackage) Import(string) (*types.Package, error) { return p.pkg, nil }

// TestPartsOfRunHaveNoCycle checks that the types of workflows/run refer to each other in one direction only.
func TestPartsOfRunHaveNoCycle(t *testing.T) {
	pkg := loadRun(t)
	refers := typeReferences(pkg.Types, pkg.TypesInfo, pkg.Syntax)
	if len(refers["run"]) == 0 {
		t.Errorf("the type run refers to nothing among %v", refers)
	}
	if cycle := findCycle(refers); cycle != nil {
		t.Errorf("types of workflows/run refer to each other: %s", strings.Join(cycle, " -> "))
	}
}

// typeReferences returns, for each type that a package declares, the others that its declaration and its methods mention, directly
// or by a method or field.
func typeReferences(pkg *types.Package, info *types.Info, files []*ast.File) map[string][]string {
	owner := map[types.Object]string{} // of methods and fields
	for _, name := range pkg.Scope().Names() {
		declared, ok := pkg.Scope().Lookup(name).(*types.TypeName)
		if !ok {
			continue
		}
		owner[declared] = name
		named, ok := declared.Type().(*types.Named)
		if !ok {
			continue
		}
		for method := range named.Methods() {
			owner[method.Origin()] = name
		}
		if fields, ok := named.Underlying().(*types.Struct); ok {
			for field := range fields.Fields() {
				owner[field] = name
			}
		}
	}
	refers := map[string][]string{}
	add := func(from string, in ast.Node) {
		ast.Inspect(in, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				if to := owner[info.Uses[id]]; to != "" && to != from && !slices.Contains(refers[from], to) {
					refers[from] = append(refers[from], to)
				}
			}
			return true
		})
	}
	for _, file := range files {
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil {
					add(owner[info.Defs[d.Name]], d)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if declared, ok := spec.(*ast.TypeSpec); ok {
						add(declared.Name.Name, declared)
					}
				}
			}
		}
	}
	return refers
}

// findCycle returns names that refer to each other in a circle, the first one again at the end, or nil.
func findCycle(refers map[string][]string) []string {
	done := map[string]bool{}
	var path []string
	var visit func(name string) []string
	visit = func(name string) []string {
		if i := slices.Index(path, name); i >= 0 {
			return append(slices.Clone(path[i:]), name)
		}
		if done[name] {
			return nil
		}
		path = append(path, name)
		for _, next := range refers[name] {
			if cycle := visit(next); cycle != nil {
				return cycle
			}
		}
		path, done[name] = path[:len(path)-1], true
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(refers)) {
		if cycle := visit(name); cycle != nil {
			return cycle
		}
	}
	return nil
}

// The check sees cycles through methods and fields, and none where references have one direction.
func TestCyclesOfTypesAreFound(t *testing.T) {
	for text, want := range map[string]string{
		"type a struct{ b b }; type b struct{ n int }; func (x *a) f() int { return x.b.n }":                                            "",
		"type a struct{ b *b }; type b struct{ a *a }":                                                                                  "a -> b -> a",
		"type a struct{ b *b }; func (x *a) f() {}; type b struct{ g func() }; type c struct{ a *a }; func (x *b) h() { (&c{}).a.f() }": "a -> b -> c -> a",
	} {
		fset, info := token.NewFileSet(), &types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
		file, err := parser.ParseFile(fset, "p.go", "package p; "+text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		pkg, err := (&types.Config{}).Check("p", fset, []*ast.File{file}, info)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(findCycle(typeReferences(pkg, info, []*ast.File{file})), " -> "); got != want {
			t.Errorf("%s: the cycle is %q, want %q", text, got, want)
		}
	}
}
