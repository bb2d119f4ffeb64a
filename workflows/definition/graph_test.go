package definition

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
)

// graphOf returns a definition from a text such as "a: ; b: a; c: a b".
func graphOf(text string) *v1.Definition {
	def := &v1.Definition{Tasks: map[string]*v1.TaskDefinition{}}
	for part := range strings.SplitSeq(text, ";") {
		name, parents, _ := strings.Cut(part, ":")
		def.Tasks[strings.TrimSpace(name)] = &v1.TaskDefinition{DependsOn: strings.Fields(parents)}
	}
	return def
}

// ancestorsIn returns the names of all tasks upstream of a task, sorted.
func ancestorsIn(def *v1.Definition, task string) []string {
	g := newGraph(def)
	return g.ancestors(g.numbers[task])
}

func TestOrderAndAncestors(t *testing.T) {
	def := graphOf("z: ; b: z; a: z; c: a b; d: c; lone: ; zz:")
	if diff := cmp.Diff([]string{"lone", "z", "a", "b", "c", "d", "zz"}, Order(def)); diff != "" {
		t.Error(diff)
	}
	for task, want := range map[string][]string{"d": {"a", "b", "c", "z"}, "a": {"z"}, "z": {}} {
		if diff := cmp.Diff(want, ancestorsIn(def, task)); diff != "" {
			t.Errorf("%s: %s", task, diff)
		}
	}
	if diff := cmp.Diff([]string{"free"}, Order(graphOf("free: ; a: b; b: a; c: b"))); diff != "" {
		t.Error(diff)
	}
}

// TestOrderAgreesWithItsSpecification compares Order, Ancestors and cycles with their specifications on random graphs.
func TestOrderAgreesWithItsSpecification(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "tasks")
		def := &v1.Definition{Tasks: map[string]*v1.TaskDefinition{}}
		for i := range n {
			parents := rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 0, 3, rapid.ID).Draw(t, "parents")
			task := &v1.TaskDefinition{}
			for _, parent := range parents {
				if parent != i {
					task.DependsOn = append(task.DependsOn, fmt.Sprintf("t%02d", parent))
				}
			}
			def.Tasks[fmt.Sprintf("t%02d", i)] = task
		}
		// reach is the transitive closure by repetition, which is slow and simple.
		reach := map[string]map[string]bool{}
		for name, task := range def.Tasks {
			reach[name] = map[string]bool{}
			for _, parent := range task.DependsOn {
				reach[name][parent] = true
			}
		}
		for changed := true; changed; {
			changed = false
			for name := range reach {
				for parent := range reach[name] {
					for above := range reach[parent] {
						changed = changed || !reach[name][above]
						reach[name][above] = true
					}
				}
			}
		}
		order := Order(def)
		cyclic := false
		for name := range def.Tasks {
			stuck := reach[name][name]
			for above := range reach[name] {
				stuck = stuck || reach[above][above]
			}
			cyclic = cyclic || stuck
			if slices.Contains(order, name) == stuck {
				t.Fatalf("%s: in order %v, stuck %v", name, order, stuck)
			}
			for _, above := range ancestorsIn(def, name) {
				if !reach[name][above] || above == name {
					t.Fatalf("%s is no ancestor of %s", above, name)
				}
			}
			want := len(reach[name])
			if reach[name][name] {
				want--
			}
			if got := len(ancestorsIn(def, name)); got != want {
				t.Fatalf("%s has %d ancestors, not %d", name, got, want)
			}
		}
		for i, name := range order {
			for _, parent := range def.Tasks[name].DependsOn {
				if slices.Index(order, parent) >= i {
					t.Fatalf("%s is before its parent %s in %v", name, parent, order)
				}
			}
		}
		g := newGraph(def)
		cycles := g.cycles()
		if cyclic != (len(cycles) > 0) {
			t.Fatalf("cycles %v, but cyclic is %v", cycles, cyclic)
		}
		for _, cycle := range cycles {
			for i, task := range cycle {
				if next := cycle[(i+1)%len(cycle)]; !slices.Contains(g.parents[task], next) {
					t.Fatalf("%v is no cycle", cycle)
				}
			}
		}
	})
}

func TestErrorOfCycleIsShort(t *testing.T) {
	def := &v1.Definition{Name: "long", Tasks: map[string]*v1.TaskDefinition{}}
	for i := range 100 {
		def.Tasks[fmt.Sprintf("t%02d", i)] = &v1.TaskDefinition{DependsOn: []string{fmt.Sprintf("t%02d", (i+1)%100)}}
	}
	d := &decoder{Report: &source.Report{}}
	graphRules{d}.cycles(def, newGraph(def))
	const want = "dependency cycle: t00 -> t01 -> t02 -> t03 -> t04 -> t05 -> t06 -> t07 -> t08 -> (90 more) -> t99 -> t00"
	if len(d.Kept) != 1 || d.Kept[0].GetMessage() != want {
		t.Errorf("%v", d.Kept)
	}
}
