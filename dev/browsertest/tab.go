package browsertest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// poll is the interval between two checks of a condition.
const poll = 20 * time.Millisecond

// Tab is a tab of a browser. Its viewport is 1024 pixels wide until SetViewport changes it.
type Tab struct {
	t      testing.TB
	ctx    context.Context
	close  func()
	origin string
	record *record
	// allowed holds texts of problems that Check ignores.
	allowed []string
}

// do runs an action, and fails the test on an error.
func (tab *Tab) do(what string, action chromedp.Action[chromedp.Void]) {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, limit)
	defer cancel()
	if err := chromedp.Do(ctx, action); err != nil {
		tab.t.Fatalf("%s: %v", what, err)
	}
}

// Open loads a page, and waits until it and its resources have loaded. A path is relative to the origin.
func (tab *Tab) Open(address string) {
	tab.t.Helper()
	if strings.HasPrefix(address, "/") {
		address = tab.origin + address
	}
	tab.do("open "+address, chromedp.Navigate(address))
}

// Reload reloads the page.
func (tab *Tab) Reload() {
	tab.t.Helper()
	tab.do("reload", chromedp.Reload())
}

// Back returns to the previous page.
func (tab *Tab) Back() {
	tab.t.Helper()
	tab.do("go back", chromedp.NavigateBack())
}

// Close closes the tab. Its records remain.
func (tab *Tab) Close() { tab.close() }

// URL returns the address of the page.
func (tab *Tab) URL() string {
	tab.t.Helper()
	return Eval[string](tab, "location.href")
}

// Eval returns the value of a JavaScript expression. If that is a promise, Eval waits for it. The page's
// Content-Security-Policy does not apply to the expression.
func Eval[T any](tab *Tab, expression string) T {
	tab.t.Helper()
	value, err := eval[T](tab, expression)
	if err != nil {
		tab.t.Fatalf("evaluate %s: %v", shorten(expression), err)
	}
	return value
}

// eval returns the value of an expression, transferred as JSON.
func eval[T any](tab *Tab, expression string) (T, error) {
	var value T
	ctx, cancel := context.WithTimeout(tab.ctx, limit)
	defer cancel()
	yes := true
	result, err := chromedp.Call(ctx, runtime.Evaluate, runtime.EvaluateParams{Expression: expression, AwaitPromise: &yes, ReturnByValue: &yes})
	if err != nil {
		return value, err
	}
	if result.ExceptionDetails != nil {
		return value, fmt.Errorf("%s", exceptionText(result.ExceptionDetails))
	}
	if len(result.Result.Value) == 0 { // undefined
		return value, nil
	}
	return value, json.Unmarshal(result.Result.Value, &value)
}

// texts returns an expression for the texts of all elements that match a selector: the visible text of HTML, and all
// text of SVG.
func texts(selector string) string {
	return fmt.Sprintf("[...document.querySelectorAll(%s)].map(e => e.innerText ?? e.textContent)", quote(selector))
}

// Text returns the text of the first element that a CSS selector matches, or "" without a match.
func (tab *Tab) Text(selector string) string {
	tab.t.Helper()
	all := tab.Texts(selector)
	if len(all) == 0 {
		return ""
	}
	return all[0]
}

// Texts returns the texts of all elements that a CSS selector matches.
func (tab *Tab) Texts(selector string) []string {
	tab.t.Helper()
	return Eval[[]string](tab, texts(selector))
}

// Count returns the number of elements that match a CSS selector.
func (tab *Tab) Count(selector string) int {
	tab.t.Helper()
	return Eval[int](tab, fmt.Sprintf("document.querySelectorAll(%s).length", quote(selector)))
}

// Attribute returns an attribute of the first element that matches a CSS selector, or "" if there is no such element or
// attribute.
func (tab *Tab) Attribute(selector, name string) string {
	tab.t.Helper()
	return Eval[string](tab, fmt.Sprintf("document.querySelector(%s)?.getAttribute(%s) ?? ''", quote(selector), quote(name)))
}

// WaitText waits until an element that matches a CSS selector contains a text, and returns how long that took.
func (tab *Tab) WaitText(selector, text string) time.Duration {
	tab.t.Helper()
	return tab.WaitTextFor(limit, selector, text)
}

// WaitTextFor does what WaitText does, with a different time limit.
func (tab *Tab) WaitTextFor(bound time.Duration, selector, text string) time.Duration {
	tab.t.Helper()
	var last []string
	took, ok := tab.wait(bound, func() bool {
		all, err := eval[[]string](tab, texts(selector))
		if err == nil { // otherwise the page is loading
			last = all
		}
		return slices.ContainsFunc(all, func(s string) bool { return strings.Contains(s, text) })
	})
	if !ok {
		tab.t.Fatalf("%s has no %q after %v; at %s there is %q", selector, text, bound, tab.URL(), shorten(strings.Join(last, " | ")))
	}
	return took
}

// WaitTrue waits until a JavaScript expression is true, and returns how long that took.
func (tab *Tab) WaitTrue(expression string) time.Duration {
	tab.t.Helper()
	took, ok := tab.wait(limit, func() bool {
		value, err := eval[bool](tab, "!!("+expression+")")
		return err == nil && value
	})
	if !ok {
		tab.t.Fatalf("%s is not true after %v; %s has %s", expression, limit, tab.URL(), shorten(tab.Text("body")))
	}
	return took
}

// WaitGone waits until no element matches a CSS selector, and returns how long that took.
func (tab *Tab) WaitGone(selector string) time.Duration {
	tab.t.Helper()
	return tab.WaitTrue(fmt.Sprintf("!document.querySelector(%s)", quote(selector)))
}

// wait waits until a condition holds. It returns how long that took, and false after the time limit.
func (tab *Tab) wait(bound time.Duration, holds func() bool) (time.Duration, bool) {
	began := time.Now()
	for !holds() {
		if time.Since(began) > bound {
			return 0, false
		}
		time.Sleep(poll)
	}
	return time.Since(began), true
}

// quote returns a string as a JavaScript literal.
func quote(s string) string {
	text, _ := json.Marshal(s) // encoding a string cannot fail
	return string(text)
}

// shorten cuts a text so that it fits into a message.
func shorten(s string) string {
	const most = 2000
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
}
