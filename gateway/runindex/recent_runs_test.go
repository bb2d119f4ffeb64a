package runindex

import (
	"slices"
	"testing"
)

func TestRecentRuns(t *testing.T) {
	var r recentRuns
	if _, ok := r.newest(); ok {
		t.Error("there is a newest run of none")
	}
	for range 3 * maxRecent {
		r.add("a-1")
	}
	r.add("b-2")
	if id, _ := r.newest(); id != "b-2" || len(r.ids) != maxRecent {
		t.Errorf("newest %s of %d", id, len(r.ids))
	}
	if got := r.findPrefix("b"); !slices.Equal(got, []string{"b-2"}) {
		t.Errorf("got %v", got)
	}
}
