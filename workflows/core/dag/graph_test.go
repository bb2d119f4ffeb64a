package dag_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

// edges returns a definition of tasks with the given dependencies.
func edges(dependsOn map[string][]string) *v1.Definition {
	def := &v1.Definition{Tasks: make(map[string]*v1.TaskDefinition)}
	for name, parents := range dependsOn {
		def.Tasks[name] = &v1.TaskDefinition{DependsOn: parents}
	}
	return def
}

func TestGraphOrder(t *testing.T) {
	def := edges(map[string][]string{
		"z": nil, "m": {"z"}, "a": {"z", "m", "z"}, "b": nil, "c": {"b"}, "y": nil,
	})
	g, err := dag.NewGraph(def, mentions(def))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range g.Len() {
		name := g.Name(i)
		got = append(got, name)
		if k, ok := g.Index(name); k != i || !ok {
			t.Errorf("Index(%q) = %d, %v, want %d", name, k, ok, i)
		}
		if g.Definition(i) != def.Tasks[name] {
			t.Errorf("Definition(%d) is not that of %s", i, name)
		}
	}
	if diff := cmp.Diff([]string{"b", "c", "y", "z", "m", "a"}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{3, 4}, g.Parents(5)); diff != "" {
		t.Errorf("parents of a (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{4, 5}, g.Children(3)); diff != "" {
		t.Errorf("children of z (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([][]int{nil, {0}, nil, nil, {3}, {4, 3}}, [][]int{g.Ancestors(0), g.Ancestors(1), g.Ancestors(2), g.Ancestors(3), g.Ancestors(4), g.Ancestors(5)}); diff != "" {
		t.Errorf("ancestors (-want +got):\n%s", diff)
	}
	if _, ok := g.Index("none"); ok {
		t.Error("found a task that is not there")
	}
}

func TestGraphRefuses(t *testing.T) {
	long := make(map[string][]string)
	for i := range 30 {
		long[fmt.Sprintf("t%02d", i)] = []string{fmt.Sprintf("t%02d", (i+1)%30)}
	}
	for name, tt := range map[string]struct {
		dependsOn map[string][]string
		want      string
	}{
		"unknown": {map[string][]string{"a": {"b"}}, `task "a" depends on unknown task "b"`},
		"itself":  {map[string][]string{"a": {"a"}}, `dependency cycle: a -> a`},
		"cycle": {
			map[string][]string{"start": nil, "x": {"start", "z"}, "y": {"x"}, "z": {"y"}, "after": {"x"}},
			`dependency cycle: x -> z -> y -> x`,
		},
		"long": {long, `dependency cycle: t00 -> t01 -> t02 -> t03 -> t04 -> t05 -> t06 -> t07 -> t08 -> t09 -> ` +
			`t10 -> t11 -> t12 -> t13 -> t14 -> t15 -> t16 -> t17 -> t18 -> t19 -> ... -> t00`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := dag.NewGraph(edges(tt.dependsOn), nil)
			if err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestEmptyGraphEndsAtOnce(t *testing.T) {
	g, err := dag.NewGraph(&v1.Definition{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(dag.Decisions{End: &dag.End{State: "completed", Task: -1}}, dag.New(g).Start()); diff != "" {
		t.Errorf("decisions (-want +got):\n%s", diff)
	}
}
