package browsertest

import (
	"context"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// height is the height of every viewport.
const height = 900

// Theme is the colour scheme that a user prefers.
type Theme string

// The themes.
const (
	Light Theme = "light"
	Dark  Theme = "dark"
)

// SetViewport sets the width of the page in CSS pixels.
func (tab *Tab) SetViewport(width int) {
	tab.t.Helper()
	tab.do("set the viewport", chromedp.EmulateViewport(int64(width), height))
}

// SetTheme sets the user's preference that the page sees (prefers-color-scheme).
func (tab *Tab) SetTheme(theme Theme) {
	tab.t.Helper()
	tab.do("set the theme", func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: string(theme)}},
		})
		return chromedp.Void{}, err
	})
}

// DisableScript disables scripts in pages that are opened later. Eval still works.
func (tab *Tab) DisableScript() {
	tab.t.Helper()
	tab.do("disable scripts", func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return chromedp.Void{}, err
	})
}

// BeforePages runs a script in each page that is opened later, before the page's own scripts.
func (tab *Tab) BeforePages(script string) {
	tab.t.Helper()
	tab.do("add a script", func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
		return chromedp.Void{}, err
	})
}
