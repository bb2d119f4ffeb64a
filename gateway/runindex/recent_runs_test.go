package runindex

import (
	"fmt"
	"slices"
	"testing"
)

func anyOwner(string) bool { return true }

func TestRecentRunsKeepsTheNewest(t *testing.T) {
	var r recentRuns
	if _, ok := r.newest(anyOwner); ok {
		t.Error("there is a newest run of none")
	}
	for i := range 3 * maxRecent {
		r.add(recentRun{fmt.Sprintf("a-%d", i), "ann"})
	}
	r.add(recentRun{"b-2", "bob"})
	if id, _ := r.newest(anyOwner); id != "b-2" || len(r.runs) != maxRecent {
		t.Errorf("newest %s of %d", id, len(r.runs))
	}
	if id, _ := r.newest(func(owner string) bool { return owner == "ann" }); id != fmt.Sprintf("a-%d", 3*maxRecent-1) {
		t.Errorf("the newest of ann is %s", id)
	}
	if got := r.findPrefix("b", func(owner string) bool { return owner == "ann" }); len(got) > 0 {
		t.Errorf("ann finds %v of bob", got)
	}
	if got := r.findPrefix("b", anyOwner); !slices.Equal(got, []string{"b-2"}) {
		t.Errorf("got %v", got)
	}
}

func TestRecentRunsNameARetriedRunOnce(t *testing.T) {
	var r recentRuns
	for _, id := range []string{"ci-0k", "ci-1k", "ci-0k"} {
		r.add(recentRun{id, "ann"})
	}
	if got, want := r.findPrefix("ci-", anyOwner), []string{"ci-0k", "ci-1k"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v, the newest first", got, want)
	}
}
