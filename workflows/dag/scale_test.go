package dag_test

import (
	"fmt"
	"testing"
	"time"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
)

var shapes = []struct {
	name string
	make func(int) *v1.Definition
}{{"chain", chain}, {"fan", fan}}

func chain(n int) *v1.Definition {
	def := &v1.Definition{Tasks: make(map[string]*v1.TaskDefinition, n)}
	for i := range n {
		task := &v1.TaskDefinition{Retry: once()}
		if i > 0 {
			task.DependsOn = []string{fmt.Sprintf("t%06d", i-1)}
		}
		def.Tasks[fmt.Sprintf("t%06d", i)] = task
	}
	return def
}

// fan is one task, n that depend on it and one that depends on them all.
func fan(n int) *v1.Definition {
	def := &v1.Definition{Tasks: make(map[string]*v1.TaskDefinition, n+2)}
	last := &v1.TaskDefinition{}
	for i := range n {
		name := fmt.Sprintf("t%06d", i)
		def.Tasks[name] = &v1.TaskDefinition{DependsOn: []string{"first"}, Retry: once()}
		last.DependsOn = append(last.DependsOn, name)
	}
	def.Tasks["first"] = &v1.TaskDefinition{Retry: once()}
	def.Tasks["last"] = last
	return def
}

// complete runs a graph to its end, with one call for every task that ends.
func complete(tb testing.TB, g *dag.Graph) *dag.End {
	s := dag.New(g)
	for waiting := s.Start().Place; len(waiting) > 0; {
		i := waiting[len(waiting)-1]
		waiting = waiting[:len(waiting)-1]
		d := s.Apply(dag.Placed{Task: i, Claim: 1, Node: "n"}, dag.Ended{Task: i, Claim: 1, State: "completed"})
		if d.End != nil {
			return d.End
		}
		waiting = append(waiting, d.Place...)
	}
	tb.Fatal("the run hangs")
	return nil
}

// A run of 100,000 tasks costs no more for each task than one of 1,000, give or take
// memory and the machine's mood; a round that looked at every task would cost a
// hundred times as much.
func TestScale(t *testing.T) {
	for _, shape := range shapes {
		t.Run(shape.name, func(t *testing.T) {
			small, large := perTask(t, shape.make(1_000), 5), perTask(t, shape.make(many), 1)
			t.Logf("%v a task in a run of 1,000, %v in one of %d", small, large, many)
			if large > 20*small {
				t.Errorf("%v a task in a run of 1,000, but %v in one of %d", small, large, many)
			}
		})
	}
}

// perTask returns the best time that a task takes in some runs.
func perTask(t *testing.T, def *v1.Definition, runs int) time.Duration {
	t.Helper()
	g, err := dag.NewGraph(def)
	if err != nil {
		t.Fatal(err)
	}
	best := time.Duration(1<<63 - 1)
	for range runs {
		begin := time.Now()
		if end := complete(t, g); end.State != "completed" {
			t.Errorf("the run ended %s", end.State)
		}
		best = min(best, time.Since(begin)/time.Duration(g.Len()))
	}
	return best
}

func TestSkipsCascadeInOneStep(t *testing.T) {
	for _, shape := range shapes {
		t.Run(shape.name, func(t *testing.T) {
			g, err := dag.NewGraph(shape.make(many))
			if err != nil {
				t.Fatal(err)
			}
			s := dag.New(g)
			s.Start()
			d := s.Apply(dag.Placed{Claim: 1, Node: "n"}, dag.Ended{Claim: 1, State: "failed"})
			if d.End == nil || len(d.Changed) != g.Len() || s.Counts()["skipped"] != g.Len()-1 {
				t.Errorf("%v, end %+v", s.Counts(), d.End)
			}
			if end := dag.Restore(g, s.Records()).Start().End; end == nil || end.State != "failed" {
				t.Errorf("restored, the run ended %+v", end)
			}
		})
	}
}

func BenchmarkApply(b *testing.B) {
	for _, n := range []int{200, 5_000, many} {
		for _, shape := range shapes {
			b.Run(fmt.Sprintf("%s/%d", shape.name, n), func(b *testing.B) {
				g, err := dag.NewGraph(shape.make(n))
				if err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				for b.Loop() {
					complete(b, g)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*g.Len()), "ns/task")
			})
		}
	}
}
