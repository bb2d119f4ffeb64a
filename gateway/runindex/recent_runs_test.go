package runindex

import (
	"fmt"
	"slices"
	"testing"
)

func TestRecentRuns(t *testing.T) {
	var r recentRuns
	if _, ok := r.newest(); ok {
		t.Error("there is a newest run of none")
	}
	for i := range 3 * maxRecent {
		r.add(fmt.Sprintf("a-%d", i))
	}
	r.add("b-2")
	if id, _ := r.newest(); id != "b-2" || len(r.ids) != maxRecent {
		t.Errorf("newest %s of %d", id, len(r.ids))
	}
	if got := r.findPrefix("b"); !slices.Equal(got, []string{"b-2"}) {
		t.Errorf("got %v", got)
	}
}

func TestRecentRunsNameARetriedRunOnce(t *testing.T) {
	var r recentRuns
	for _, id := range []string{"ci-0k", "ci-1k", "ci-0k"} {
		r.add(id)
	}
	if got, want := r.findPrefix("ci-"), []string{"ci-0k", "ci-1k"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v, the newest first", got, want)
	}
}
