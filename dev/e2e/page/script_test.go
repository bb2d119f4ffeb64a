package page

import (
	"testing"

	"switchyard/dev/browsertest"
)

// Without script each view is there to read, and actions ask on a page of their own.
func TestViewsAreReadableWithoutScript(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tab := browsertest.NewProfile(t).Tab(w.gateway)
	tab.DisableScript()
	for _, c := range viewChecks {
		tab.Open(c.path(w))
		for _, text := range c.want {
			tab.WaitText("main", text)
		}
		checkWidth(t, tab, c.name)
	}
	tab.Open("/ui/schedules/nightly")
	tab.TabTo("form[action='/ui/actions/pause-schedule'] button")
	tab.Press("Enter")
	tab.WaitText("main", "Pause schedule nightly?")
	tab.TabTo("main input[name=reason]")
	tab.Type("no script")
	tab.TabTo("main button")
	tab.Press("Enter")
	tab.WaitText("#notice", "paused")
	tab.WaitText("main", "no script")
	if !w.isPaused(t, "nightly") {
		t.Error("the schedule is not paused")
	}
	tab.Check(t)
}
