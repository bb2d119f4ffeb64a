package browsertest

import (
	"slices"
	"strings"
	"testing"
)

// Allow has Check ignore problems that have one of the texts in them, such as those of a gateway that a test has stopped.
func (tab *Tab) Allow(texts ...string) { tab.allowed = append(tab.allowed, texts...) }

// Problems returns what the tab and the shared workers of its pages did wrong so far, without what Allow allows.
func (tab *Tab) Problems() []Problem {
	var all []Problem
	for _, r := range tab.records() {
		all = append(all, r.snapshot().problems...)
	}
	return slices.DeleteFunc(all, func(p Problem) bool {
		return slices.ContainsFunc(tab.allowed, func(text string) bool { return strings.Contains(p.Text, text) })
	})
}

// Warnings returns the warnings on the console so far.
func (tab *Tab) Warnings() []string {
	var all []string
	for _, r := range tab.records() {
		all = append(all, r.snapshot().warnings...)
	}
	return all
}

// Requests returns the URLs of all requests so far.
func (tab *Tab) Requests() []string {
	var all []string
	for _, r := range tab.records() {
		all = append(all, r.snapshot().requests...)
	}
	return all
}

// Check fails the test for each problem of the tab. A test calls it at its end.
func (tab *Tab) Check(t testing.TB) {
	t.Helper()
	for _, p := range tab.Problems() {
		t.Errorf("%s: %s", p.Kind, p.Text)
	}
}
