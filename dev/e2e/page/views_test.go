package page

import (
	"fmt"
	"testing"

	"switchyard/dev/browsertest"
)

// viewCheck is a view with what it shows of a world.
type viewCheck struct {
	name string
	path func(w *world) string
	want []string // texts of the page
}

// at returns a path that is the same in every world.
func at(path string) func(*world) string { return func(*world) string { return path } }

// of returns the path of a run.
func of(run func(w *world) string) func(*world) string {
	return func(w *world) string { return "/ui/runs/" + run(w) }
}

// viewChecks are all views, those of runs in every state.
var viewChecks = []viewCheck{
	{"overview", at("/"), []string{"Overview", "local-1", "local-2"}},
	{"runs", at("/ui/runs"), []string{"Runs", "completed", "failed", "paused", "cancelled", "fan-out"}},
}

// widths are those of a phone, a tablet and a screen, in CSS pixels.
var widths = []int{360, 1024, 1920}

// Each view shows what is there, at every width and in both themes, without a serious finding of axe, an error or a request
// elsewhere.
func TestViewsShowRunsOfEveryKind(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	profile := browsertest.NewProfile(t)
	for _, c := range viewChecks {
		t.Run(c.name, func(t *testing.T) {
			tab := profile.Tab(w.gateway).In(t)
			tab.Open(c.path(w))
			for _, text := range c.want {
				tab.WaitText("main", text)
			}
			for _, theme := range []browsertest.Theme{browsertest.Light, browsertest.Dark} {
				tab.SetTheme(theme)
				for _, width := range widths {
					tab.SetViewport(width)
					checkWidth(t, tab, fmt.Sprintf("%s, %d wide, %s", c.name, width, theme))
					tab.CheckAccessibility(t)
				}
			}
			tab.Check(t)
			tab.Close()
		})
	}
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
