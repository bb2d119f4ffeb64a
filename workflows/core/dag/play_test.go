package dag_test

import (
	"testing"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

// A script defines the parts of a run that the core does not decide.
type script struct {
	conditions map[string]string      // "true", "false", or the text of an error
	fanOut     map[string]int         // number of instances by task
	attempts   map[string][]dag.Ended // by task, its attempts in order; further ones complete
}

// play runs a definition to its end in rounds. Each round delivers all answers that are due, in the order of the tasks. play
// returns the state and the end of the run.
func play(t *testing.T, def *v1.Definition, sc script) (*dag.State, *dag.End) {
	t.Helper()
	g, err := dag.NewGraph(def, mentions(def))
	if err != nil {
		t.Fatal(err)
	}
	s := dag.New(g)
	played := make(map[string]int)
	for d := s.Start(); ; {
		if d.End != nil {
			return s, d.End
		}
		var events []dag.Event
		for _, i := range d.Evaluate {
			e := dag.Evaluated{Task: i}
			switch c := sc.conditions[g.Name(i)]; c {
			case "true":
				e.Value = true
			case "false":
				e.Because = "x is 1"
			default:
				e.Err = c
			}
			events = append(events, e)
		}
		for _, i := range d.Expand {
			events = append(events, dag.Expanded{Task: i, Count: sc.fanOut[s.Name(i)]})
		}
		for _, b := range d.Backoff {
			events = append(events, dag.BackoffOver{Task: b.Task, Claim: s.Task(b.Task).Claim})
		}
		for _, i := range d.Place {
			name, claim := s.Name(i), s.Task(i).Claim
			end := dag.Ended{State: v1.TaskCompleted}
			if n := played[name]; n < len(sc.attempts[name]) {
				end = sc.attempts[name][n]
			}
			played[name]++
			end.Task, end.Claim = i, claim
			events = append(events, dag.Placed{Task: i, Claim: claim, Node: "node-a"}, end)
		}
		if len(events) == 0 {
			t.Fatalf("the run hangs: %v", s.Records())
		}
		d = s.Apply(events...)
	}
}

// once returns a retry policy without retries.
func once() *v1.RetryPolicy { return &v1.RetryPolicy{MaxRetries: new(int32)} }

func ended(state string) dag.Ended {
	return dag.Ended{State: state, Reason: "r", Error: "e", ExitCode: 1}
}

func repeat(n int, e dag.Ended) []dag.Ended {
	ends := make([]dag.Ended, n)
	for i := range ends {
		ends[i] = e
	}
	return ends
}

func record(t *testing.T, s *dag.State, name string) dag.Record {
	t.Helper()
	i, ok := s.Index(name)
	if !ok {
		t.Fatalf("no task %q", name)
	}
	return s.Task(i)
}
