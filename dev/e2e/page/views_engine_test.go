//go:build engines

package page

import (
	"fmt"
	"testing"

	"switchyard/dev/browsertest"
)

// viewCheck is a view with the texts that it must show.
type viewCheck struct {
	name string
	path func(w *world) string
	want []string // texts on the page
}

// at returns a path that is the same in every world.
func at(path string) func(*world) string { return func(*world) string { return path } }

// of returns the path of a run.
func of(run func(w *world) string) func(*world) string {
	return func(w *world) string { return "/ui/runs/" + run(w) }
}

// viewChecks lists all views, with runs in every state.
var viewChecks = []viewCheck{
	{"overview", at("/"), []string{"Overview", "1 task used up all retries", "Deploy 1.9?", "no-such-node", "2 runs of the last 24 hours failed"}},
	{"runs", at("/ui/runs"), []string{"completed", "failed", "paused", "cancelled", "fan-out", "paintings"}},
	{"runs that failed", at("/ui/runs?state=failed"), []string{"failed", "dead-letter"}},
	{"runs of a batch", at("/ui/runs?batch=paintings"), []string{"colours"}},
	{"no runs", at("/ui/runs?name=no-such-workflow"), []string{"No run matches"}},
	{"completed run", of(func(w *world) string { return w.completed }), []string{"completed", "fetch", "use", "2 tasks"}},
	{"failed run", of(func(w *world) string { return w.failed }), []string{"failed", "compile", "link", "skipped"}},
	{"retrying run", of(func(w *world) string { return w.retrying }), []string{"running", "flaky", "queued"}},
	{"waiting run", of(func(w *world) string { return w.waiting }), []string{"running", "train", "queued"}},
	{"run with an approval", of(func(w *world) string { return w.approval }), []string{"ask", "deploy", "paused"}},
	{"run with a dead letter", of(func(w *world) string { return w.deadLetter }), []string{"failed", "doomed", "dead_letter"}},
	{"run with a fan-out", of(func(w *world) string { return w.fanOut }), []string{"each", "50 instances"}},
	{"paused run", of(func(w *world) string { return w.paused }), []string{"paused", "first", "second"}},
	{"cancelled run", of(func(w *world) string { return w.cancelled }), []string{"cancelled", "endless"}},
	{"completed task", of(func(w *world) string { return w.completed + "/tasks/fetch" }), []string{"fetch", "completed", "fetched it", "score", "yes"}},
	{"failed task", of(func(w *world) string { return w.failed + "/tasks/compile" }), []string{"compile", "missing semicolon", "exit code 3"}},
	{"skipped task", of(func(w *world) string { return w.failed + "/tasks/link" }), []string{"link", "skipped", "compile"}},
	{"retrying task", of(func(w *world) string { return w.retrying + "/tasks/flaky" }), []string{"flaky", "queued", "no luck"}},
	{"waiting task", of(func(w *world) string { return w.waiting + "/tasks/train" }), []string{"train", "queued", "no-such-node", "local-1", "local-2"}},
	{"task that waits for approval", of(func(w *world) string { return w.approval + "/tasks/ask" }), []string{"ask", "Approve", "Reject"}},
	{"dead letter", of(func(w *world) string { return w.deadLetter + "/tasks/doomed" }), []string{"doomed", "the disk is full", "Attempts"}},
	{"fan-out", of(func(w *world) string { return w.fanOut + "/tasks/each" }), []string{"each", "Instances"}},
	{"instance", of(func(w *world) string { return w.fanOut + "/tasks/each%5B3%5D" }), []string{"each[3]", "failed"}},
	{"running task", of(func(w *world) string { return w.colours + "/tasks/paint" }), []string{"paint", "running", "bold green", "Kill"}},
	{"search in a log", of(func(w *world) string { return w.colours + "/tasks/paint/log/search?q=orange" }), []string{"orange"}},
	{"nodes", at("/ui/nodes"), []string{"local-1", "local-2", "active", "shell"}},
	{"node", at("/ui/nodes/local-1"), []string{"local-1", "Running here", "About the node"}},
	{"queue", at("/ui/queue"), []string{"train", "no-such-node", "flaky"}},
	{"approvals", at("/ui/approvals"), []string{"Deploy 1.9?", "ask"}},
	{"dead letters", at("/ui/dead-letters"), []string{"doomed", "dead-letter"}},
	{"workflows", at("/ui/workflows"), []string{"Workflows", "nightly"}},
	{"workflow", at("/ui/workflows/nightly"), []string{"What a night has to do", "Where it goes", "copies", "dry"}},
	{"editor", at("/ui/editor?from=nightly"), []string{"Edit nightly", "Definition"}},
	{"schedules", at("/ui/schedules"), []string{"Schedules", "nightly"}},
	{"schedule", at("/ui/schedules/nightly"), []string{"Europe/Berlin", "Next times"}},
}

// widths are the widths of a phone, a tablet and a screen, in CSS pixels.
var widths = []int{360, 1024, 1920}

// TestViewsShowRunsOfEveryKind checks that each view shows its texts and fits every width, without an error
// or a request to another host, and that axe has no serious finding on a phone with the light theme and on a screen with
// the dark one. Then it checks the views without script.
func TestViewsShowRunsOfEveryKind(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	profile := browsertest.NewProfile(t)
	for _, c := range viewChecks {
		t.Run(c.name, func(t *testing.T) {
			tab := profile.Tab(w.Gateway).In(t)
			tab.Open(c.path(w))
			for _, text := range c.want {
				tab.WaitText("main", text)
			}
			for _, width := range widths {
				tab.SetViewport(width)
				checkWidth(t, tab, fmt.Sprintf("%s, %d wide", c.name, width))
			}
			tab.SetTheme(browsertest.Dark)
			tab.CheckAccessibility(t)
			tab.SetTheme(browsertest.Light)
			tab.SetViewport(widths[0])
			tab.CheckAccessibility(t)
			tab.Check(t)
			tab.Close()
		})
	}
	t.Run("without script", func(t *testing.T) { testViewsAreReadableWithoutScript(t, w) })
}

// checkWidth fails the test if the page is wider than its window.
func checkWidth(t *testing.T, tab *browsertest.Tab, what string) {
	t.Helper()
	wide := browsertest.Eval[struct {
		Scroll, Inner int
		By            []string
	}](tab, `({
		scroll: document.scrollingElement.scrollWidth, inner: innerWidth,
		by: [...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1)
			.slice(0, 5).map(e => e.tagName.toLowerCase() + "#" + e.id + "." + e.getAttribute("class"))
	})`)
	if wide.Scroll > wide.Inner {
		t.Errorf("%s: the page is %d wide in a window of %d, by %v", what, wide.Scroll, wide.Inner, wide.By)
	}
}
