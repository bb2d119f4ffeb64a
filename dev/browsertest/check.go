package browsertest

import (
	"slices"
	"strings"
	"testing"
)

// Allow makes Check ignore problems that contain one of the texts, such as those of a gateway that a test has stopped.
func (tab *Tab) Allow(texts ...string) { tab.allowed = append(tab.allowed, texts...) }

// Problems returns the problems of the tab so far, except those that Allow allows. It does not watch shared workers,
// because the browser occasionally stops one when a debugger attaches to it.
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

// Check fails the test for each problem of the tab. Tests call it at the end.
func (tab *Tab) Check(t testing.TB) {
	t.Helper()
	for _, p := range tab.Problems() {
		t.Errorf("%s: %s", p.Kind, p.Text)
	}
}
