package dag_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

// each returns a graph of one task that fans out and one task after it.
func each(tb testing.TB, maxFailures int32) *dag.Graph {
	g, err := dag.NewGraph(&v1.Definition{Tasks: map[string]*v1.TaskDefinition{
		"each": retried(maxFailures), "last": {DependsOn: []string{"each"}},
	}}, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return g
}

// expanded returns a run of each with n instances that all request a node.
func expanded(tb testing.TB, n int, maxFailures int32) *dag.State {
	s := dag.New(each(tb, maxFailures))
	s.Start()
	if d := s.Apply(dag.Expanded{Count: n}); len(d.Place) != n || d.Place[n-1] != s.Len()-1 {
		tb.Fatalf("%d of %d instances are requested", len(d.Place), n)
	}
	return s
}

// attempt places an instance and ends its attempt.
func attempt(s *dag.State, i int, e dag.Ended) dag.Decisions {
	claim := s.Task(i).Claim
	e.Task, e.Claim = i, claim
	return s.Apply(dag.Placed{Task: i, Claim: claim, Node: "n"}, dag.Running{Task: i, Claim: claim}, e)
}

// lives holds the possible sequences of events for the instances of a task.
var lives = map[string]func(tb testing.TB, n int){
	"all complete": func(tb testing.TB, n int) {
		s := expanded(tb, n, 0)
		for i := 2; i < s.Len(); i++ {
			attempt(s, i, exit(0))
		}
		wantGroup(tb, s, "completed", "")
	},
	"all become dead letters and are put back": func(tb testing.TB, n int) {
		s := expanded(tb, n, int32(n))
		for range 2 {
			for i := 2; i < s.Len()-1; i++ {
				attempt(s, i, exit(1))
				s.Apply(dag.BackoffOver{Task: i, Claim: s.Task(i).Claim})
				attempt(s, i, exit(1))
				s.Apply(dag.Retry{Task: i})
			}
		}
		for i := 2; i < s.Len(); i++ {
			attempt(s, i, exit(0))
		}
		wantGroup(tb, s, "completed", "")
	},
	"half fail, and the rest is skipped": func(tb testing.TB, n int) {
		s := expanded(tb, n, int32(n/2-1))
		for i := 2; i < 2+n/2; i++ {
			attempt(s, i, dag.Ended{State: "killed"})
		}
		wantGroup(tb, s, "failed", "instances")
	},
	"each is cancelled alone": func(tb testing.TB, n int) {
		s := expanded(tb, n, int32(n))
		for i := 2; i < s.Len(); i++ {
			s.Apply(dag.CancelTask{Task: i})
		}
		wantGroup(tb, s, "completed", "")
	},
	"all run when they are cancelled": func(tb testing.TB, n int) {
		s := expanded(tb, n, 0)
		for i := 2; i < s.Len(); i++ {
			s.Apply(dag.Placed{Task: i, Claim: 1, Node: "n"})
		}
		if d := s.Apply(dag.CancelTask{}); len(d.Stop) != n {
			tb.Fatalf("%d are stopped", len(d.Stop))
		}
		for i := 2; i < s.Len(); i++ {
			s.Apply(dag.Ended{Task: i, Claim: 1, State: "cancelled"})
		}
		wantGroup(tb, s, "cancelled", "task_cancelled")
	},
}

func wantGroup(tb testing.TB, s *dag.State, state, reason string) {
	tb.Helper()
	if rec := s.Task(0); rec.State != state || rec.Reason != reason {
		tb.Fatalf("the task is %+v, want %s (%s)", rec, state, reason)
	}
}

// TestInstanceCostIsIndependentOfTheirNumber repeats TestTaskCostIsIndependentOfTheSizeOfTheRun for instances.
func TestInstanceCostIsIndependentOfTheirNumber(t *testing.T) {
	for name, live := range lives {
		t.Run(name, func(t *testing.T) {
			compare(t, func(n int) time.Duration {
				begin := cpuTime(t)
				live(t, n)
				return (cpuTime(t) - begin) / time.Duration(n)
			})
		})
	}
}

// The memory that a state takes for an instance is small.
func TestInstancesTakeLittleMemory(t *testing.T) {
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	s := expanded(t, many, 0)
	for i := 2; i < s.Len(); i++ {
		s.Apply(dag.Placed{Task: i, Claim: 1, Node: "node-a"})
	}
	size := (heap() - before) / uint64(many)
	t.Logf("%d bytes an instance", size)
	if size >= 300 {
		t.Errorf("%d bytes an instance", size)
	}
	runtime.KeepAlive(s)
}

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

// fan returns a definition of one task, n tasks that depend on it and one that depends on them all.
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

// A task in a run of many tasks costs no more than one in a run of 1,000, apart from memory effects and noise. If a round
// visited every task, it would cost many/1,000 times as much.
func TestTaskCostIsIndependentOfTheSizeOfTheRun(t *testing.T) {
	for _, shape := range shapes {
		t.Run(shape.name, func(t *testing.T) {
			compare(t, func(n int) time.Duration { return perTask(t, shape.make(n)) })
		})
	}
}

// compare checks that a task among many costs less than half of what it would cost if every step visited all tasks. It takes
// the best of several measurements, because other processes slow the processor down.
func compare(t *testing.T, measure func(n int) time.Duration) {
	t.Helper()
	const longest = time.Duration(1<<63 - 1)
	most := time.Duration(max(10, many/2_000))
	small, large := longest, longest
	for range 5 {
		small = min(small, measure(1_000))
	}
	for tries := 0; tries < 5 && large > most*small; tries++ {
		large = min(large, measure(many))
	}
	t.Logf("%v each of 1,000, %v each of %d", small, large, many)
	if large > most*small {
		t.Errorf("%v each of 1,000, but %v each of %d", small, large, many)
	}
}

// perTask returns the processor time per task in a run.
func perTask(t *testing.T, def *v1.Definition) time.Duration {
	t.Helper()
	g, err := dag.NewGraph(def, mentions(def))
	if err != nil {
		t.Fatal(err)
	}
	begin := cpuTime(t)
	if end := complete(t, g); end.State != "completed" {
		t.Errorf("the run ended %s", end.State)
	}
	return (cpuTime(t) - begin) / time.Duration(g.Len())
}

func TestSkipsCascadeInOneStep(t *testing.T) {
	for _, shape := range shapes {
		t.Run(shape.name, func(t *testing.T) {
			g, err := dag.NewGraph(shape.make(many), nil)
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
				g, err := dag.NewGraph(shape.make(n), nil)
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
