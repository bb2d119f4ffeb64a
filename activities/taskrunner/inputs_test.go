package taskrunner

import (
	"slices"
	"testing"

	"switchyard/activities/store"
	historyv1 "switchyard/proto/switchyard/history/v1"
)

// If the outputs of a parent are too large together, they are null in the input, and the log says why.
func TestOutputsThatAreLeftOut(t *testing.T) {
	t.Parallel()
	kept, err := store.Open(t.Context(), "mem://")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = kept.Close() })
	n := &Node{Store: kept}
	g, err := n.inputReader().gatherInputs(t.Context(), &historyv1.ExecuteRequest{
		Task: "after", Notices: []string{"first"},
		Parents: []*historyv1.ParentOutput{
			{Task: "each", FanOut: &historyv1.FanOutView{Count: 3, Completed: 3, Error: "they are larger than 8 MiB together"}},
			{Task: "small", FanOut: &historyv1.FanOutView{Count: 1, Completed: 1}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"first", "each is null in $SWITCHYARD_INPUT: they are larger than 8 MiB together"}; !slices.Equal(g.notices, want) {
		t.Errorf("notices %q, want %q", g.notices, want)
	}
}
