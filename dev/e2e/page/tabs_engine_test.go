//go:build engines

package page

import (
	"testing"

	"switchyard/dev/browsertest"
)

// testSevenTabsAreLive checks that seven tabs of a browser are live at once, although a browser opens at most six
// HTTP/1.1 connections to a host.
func testSevenTabsAreLive(t *testing.T, s *stack) {
	profile := browsertest.NewProfile(t)
	var tabs []*browsertest.Tab
	for range 7 {
		tab := profile.Tab(s.Gateway)
		tab.Open("/ui/runs")
		tabs = append(tabs, tab)
	}
	for _, tab := range tabs {
		tab.WaitTrue("document.body.dataset.live == 'live'")
	}
	id := s.Submit(t, completedDefinition)
	s.AwaitRun(t, id, "completed")
	for _, tab := range tabs {
		awaitLive(t, tab, "#run-"+id, "completed")
	}
	// A connection must be left for another page.
	tabs[3].Open("/")
	tabs[3].WaitText("h1", "Overview")
	for _, tab := range tabs {
		tab.Check(t)
	}
}

// testPageIsLiveWithoutASharedWorker checks that a page is live in a browser without shared workers, and in one whose
// shared worker never answers.
func testPageIsLiveWithoutASharedWorker(t *testing.T, s *stack) {
	var tabs []*browsertest.Tab
	for _, script := range []string{
		"delete window.SharedWorker",
		"window.SharedWorker = class { port = new MessageChannel().port1 }",
	} {
		tab := browsertest.NewProfile(t).Tab(s.Gateway)
		tab.BeforePages(script)
		tab.Open("/ui/runs")
		tabs = append(tabs, tab)
	}
	for _, tab := range tabs {
		tab.WaitTrue("document.body.dataset.live == 'live'")
	}
	id := s.Submit(t, completedDefinition)
	s.AwaitRun(t, id, "completed")
	for _, tab := range tabs {
		awaitLive(t, tab, "#run-"+id, "completed")
		tab.Check(t)
	}
}
