package runindex

import (
	"fmt"
	"slices"
	"testing"
)

func anyOwner(string) bool { return true }

func TestRecentRunsKeepsTheNewest(t *testing.T) {
	var r recentRuns
	if _, ok := r.newestOf("ann"); ok {
		t.Error("there is a newest run of none")
	}
	for i := range 3 * maxRecent {
		r.add(submittedRun{fmt.Sprintf("a-%d", i), "ann", noon})
	}
	r.add(submittedRun{"b-2", "bob", noon})
	if run, _ := r.newestOf("ann"); run.id != fmt.Sprintf("a-%d", 3*maxRecent-1) || len(r.runs) != maxRecent {
		t.Errorf("the newest of ann is %v, of %d", run, len(r.runs))
	}
	if got := r.findPrefix("b", func(owner string) bool { return owner == "ann" }); len(got) > 0 {
		t.Errorf("ann finds %v of bob", got)
	}
	if got := r.findPrefix("b", anyOwner); !slices.Equal(got, []string{"b-2"}) {
		t.Errorf("got %v", got)
	}
}

func TestRecentRunsNameARunOnce(t *testing.T) {
	var r recentRuns
	for _, id := range []string{"ci-0k", "ci-1k", "ci-0k"} {
		r.add(submittedRun{id, "ann", noon})
	}
	if got, want := r.findPrefix("ci-", anyOwner), []string{"ci-0k", "ci-1k"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v, the newest first", got, want)
	}
}
