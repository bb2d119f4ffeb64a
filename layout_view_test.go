package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"testing"

	gopackages "golang.org/x/tools/go/packages"
)

// view is the package with what people see of a run. A run tells the view what has happened, and decides nothing by it.
const view = "switchyard/workflows/status"

// viewSetters are the functions and methods of the view by which a run tells it what has happened.
var viewSetters = []string{
	"New", "Restore", "RestoreRun", "ExplainWaits",
	"AddInstances", "End", "EndAttempt", "EndAway", "EndRun", "EndSilence", "RecordChanged", "SetApproval", "SetAway", "SetBack", "SetCached",
	"SetChildRun", "SetContext", "SetCounts", "SetPausedBy", "SetPlace", "SetProblem", "SetRetryTime", "SetRunState", "SetSilent",
	"SetSlotWait", "SetStartedAt", "SetSteeredBy", "SetWaitReason", "Touch", "Update",
}

// viewProjections are the methods and fields of the view for what goes to people: in answers, events, error messages and reports,
// and in the state for the next execution, whose view continues from it.
var viewProjections = []string{
	"AddCheckpoints", "AllItems", "Answer", "Instances", "Log", "RunState", "ShownCounts", "ShownState", "Text", "Whole",
}

// TestRunDoesNotReadTheView checks that workflows/run uses exactly these names of the view.
func TestRunDoesNotReadTheView(t *testing.T) {
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
	allowed, used := slices.Concat(viewSetters, viewProjections), viewNames(found[0].TypesInfo)
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
	seen, _ := check(view, `package status
type table struct{ Revision int }
type Status struct{ table }
func (s *Status) State(i int) string { return "" }
func (s *Status) Touch(i int) {}
func Ended(s *Status) bool { return true }`, nil)
	_, info := check("switchyard/workflows/run", `package run
import "switchyard/workflows/status"
type run struct{ status *status.Status }
func (r *run) decide() bool {
	return r.status.State(0) == "" && r.status.Revision > 1 && status.Ended(r.status)
}`, seen)
	if got, want := viewNames(info), []string{"Ended", "Revision", "State"}; !slices.Equal(got, want) {
		t.Errorf("the run uses %v, want %v", got, want)
	}
}

// onePackage is an importer of one package.
type onePackage struct{ pkg *types.Package }

func (p onePackage) Import(string) (*types.Package, error) { return p.pkg, nil }
