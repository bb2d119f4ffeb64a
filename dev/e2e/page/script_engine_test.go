//go:build engines

package page

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"switchyard/dev/browsertest"
	"switchyard/dev/processes"
)

// testViewsAreReadableWithoutScript checks that each view is readable without script, and that actions ask for
// confirmation on a page of their own.
func testViewsAreReadableWithoutScript(t *testing.T, w *world) {
	tab := browsertest.NewProfile(t).Tab(w.Gateway)
	tab.DisableScript()
	for _, c := range viewChecks {
		processes.Await(t, fmt.Sprintf("%s shows %q", c.name, c.want), func() bool { // a reload shows data that was still being read
			tab.Open(c.path(w))
			text := tab.Text("main")
			return !slices.ContainsFunc(c.want, func(want string) bool { return !strings.Contains(text, want) })
		})
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
	tab.WaitText("main", "no script") // the page after the action shows its outcome without a reload
	if !w.isPaused(t, "nightly") {
		t.Error("the schedule is not paused")
	}
	tab.Check(t)
}
