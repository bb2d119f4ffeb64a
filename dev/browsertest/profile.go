package browsertest

import (
	"context"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// Profile holds cookies, storage and connections of its own. Tabs of one profile share them.
type Profile struct {
	t   testing.TB
	ctx context.Context
}

// NewProfile returns an empty profile, which lives until the end of the test. If this machine has no chromium, it skips
// the test, or fails it if CI is set.
func NewProfile(t testing.TB) *Profile {
	t.Helper()
	ctx, cancel := chromedp.NewContext(acquire(t), chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil { // creates the profile
		t.Fatalf("create a profile: %v", err)
	}
	return &Profile{t: t, ctx: ctx}
}

// Tab opens an empty tab for pages of an origin, such as http://127.0.0.1:7080. The tab behaves as if it had the focus.
func (p *Profile) Tab(origin string) *Tab {
	p.t.Helper()
	record := newRecord(origin)
	ctx, cancel := chromedp.NewContext(p.ctx, chromedp.WithListener(record.add))
	tab := &Tab{t: p.t, ctx: ctx, close: cancel, origin: origin, record: record}
	p.t.Cleanup(cancel)
	// The first action opens the tab, which lives as long as the context of that action.
	if err := chromedp.Do(ctx); err != nil {
		p.t.Fatalf("open a tab: %v", err)
	}
	tab.do("set the focus", func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
		return chromedp.Void{}, err
	})
	tab.SetViewport(1024)
	return tab
}

// Open opens a page in a tab of a new profile. The tab's origin is that of the URL.
func Open(t testing.TB, url string) *Tab {
	t.Helper()
	tab := NewProfile(t).Tab(originOf(url))
	tab.Open(url)
	return tab
}

// In returns the tab for a subtest. Its methods then fail the subtest instead of the test that has opened the profile.
func (tab *Tab) In(t testing.TB) *Tab {
	other := *tab
	other.t = t
	return &other
}
