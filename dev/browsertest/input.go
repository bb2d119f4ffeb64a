package browsertest

import (
	"fmt"
	"strings"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// keys maps the names of keys to their values. Any other key is its own character.
var keys = map[string]string{
	"Tab": kb.Tab, "Enter": kb.Enter, "Escape": kb.Escape, "Space": " ", "Backspace": kb.Backspace,
	"ArrowDown": kb.ArrowDown, "ArrowUp": kb.ArrowUp, "ArrowLeft": kb.ArrowLeft, "ArrowRight": kb.ArrowRight,
	"Home": kb.Home, "End": kb.End, "PageUp": kb.PageUp, "PageDown": kb.PageDown,
}

// modifiers maps the names of modifier keys, as in Shift+Tab, to their values.
var modifiers = map[string]chromedp.Modifier{
	"Shift": kb.ModifierShift, "Control": kb.ModifierCtrl, "Alt": kb.ModifierAlt,
}

// Press presses keys one after another: a name such as Tab, Enter, Space or ArrowDown, a character, or either with
// modifiers, as in Shift+Tab.
func (tab *Tab) Press(names ...string) {
	tab.t.Helper()
	for _, name := range names {
		parts := strings.Split(name, "+")
		key := parts[len(parts)-1]
		if code, ok := keys[key]; ok {
			key = code
		}
		var held []chromedp.Modifier
		for _, part := range parts[:len(parts)-1] {
			modifier, ok := modifiers[part]
			if !ok {
				tab.t.Fatalf("%s is not a modifier", part)
			}
			held = append(held, modifier)
		}
		tab.do("press "+name, chromedp.KeyEvent(key, chromedp.KeyModifiers(held...)))
	}
}

// Type presses the keys of a text.
func (tab *Tab) Type(text string) {
	tab.t.Helper()
	tab.do("type", chromedp.KeyEvent(text))
}

// TabTo presses Tab until an element that matches a CSS selector has the focus, as a person without a mouse does. It
// first waits until the page has such an element. It fails the test if the keyboard does not reach one, or if an element
// with the focus is not visible.
func (tab *Tab) TabTo(selector string) {
	tab.t.Helper()
	tab.WaitTrue(fmt.Sprintf("document.querySelector(%s)", quote(selector)))
	const most = 300
	var passed []string
	for range most {
		tab.Press("Tab")
		focus := Eval[struct {
			Match, Visible bool
			Name           string
		}](tab, fmt.Sprintf(`(e => ({
			match: e.matches(%s),
			visible: e === document.body || e.getClientRects().length > 0,
			name: e.tagName.toLowerCase() + (e.id && "#" + e.id) + " " + (e.innerText ?? "").slice(0, 30)
		}))(document.activeElement ?? document.body)`, quote(selector)))
		if !focus.Visible {
			tab.t.Fatalf("the focus is on %s, which is not visible", focus.Name)
		}
		if focus.Match {
			return
		}
		passed = append(passed, focus.Name)
	}
	tab.t.Fatalf("Tab does not reach %s; it passes %s", selector, shorten(strings.Join(passed, ", ")))
}

// Click clicks the first visible element that matches a CSS selector.
func (tab *Tab) Click(selector string) {
	tab.t.Helper()
	tab.do("click "+selector, chromedp.Click(chromedp.CSS(selector)))
}

// SetValue sets the value of a field as if it had been typed.
func (tab *Tab) SetValue(selector, value string) {
	tab.t.Helper()
	Eval[any](tab, fmt.Sprintf(`(e => {
		e.value = %s
		e.dispatchEvent(new Event("input", {bubbles: true}))
		e.dispatchEvent(new Event("change", {bubbles: true}))
	})(document.querySelector(%s))`, quote(value), quote(selector)))
}
