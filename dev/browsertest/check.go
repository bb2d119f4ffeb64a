package browsertest

import (
	"slices"
	"strings"
	"testing"
)

// Allow has Check ignore problems that have one of the texts in them, such as those of a gateway that a test has stopped.
func (tab *Tab) Allow(texts ...string) { tab.allowed = append(tab.allowed, texts...) }

// Problems returns what the tab did wrong so far, without what Allow allows. Shared workers of its pages are not watched: the
// browser now and then stops one that a debugger attaches to.
func (tab *Tab) Problems() []Problem {
	return slices.DeleteFunc(tab.record.snapshot().problems, func(p Problem) bool {
		return slices.ContainsFunc(tab.allowed, func(text string) bool { return strings.Contains(p.Text, text) })
	})
}

// Warnings returns the warnings on the console so far.
func (tab *Tab) Warnings() []string {
	return tab.record.snapshot().warnings
}

// Requests returns the URLs of all requests so far.
func (tab *Tab) Requests() []string {
	return tab.record.snapshot().requests
}

// Check fails the test for each problem of the tab. A test calls it at its end.
func (tab *Tab) Check(t testing.TB) {
	t.Helper()
	for _, p := range tab.Problems() {
		t.Errorf("%s: %s", p.Kind, p.Text)
	}
}
