//go:build engines

package page

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"switchyard/dev/browsertest"
	"switchyard/dev/processes"
)

// hostile is a text that would run a script, leave its element, colour a terminal, set its title, or reverse the
// direction of the following text if it were not escaped.
const hostile = `<img src=x onerror="window.pwned=1"></script><script>window.pwned=1</script>'"><b onmouseover=window.pwned=1>{{.}}` +
	"\x1b[31mred\x1b]0;title\x07\u202ereversed"

// TestHostileTextsStayTexts checks that no text from a user becomes a part of a page's markup.
func TestHostileTextsStayTexts(t *testing.T) {
	t.Parallel()
	s := startStack(t, "--label", "<img src=x onerror=window.pwned=1>")
	id := s.cli(t, "submit", processes.WriteFile(t, "definition.yaml", hostileDefinition(t, "hostile")), "--input", "in="+hostile)
	s.AwaitRun(t, id, "failed")
	s.awaitLog(t, id, "talk", "<img")
	asking := s.Submit(t, hostileDefinition(t, "hostile-asking"))
	s.AwaitTask(t, asking, "ask", "paused")
	s.cli(t, "runs", "pause", asking, "--reason", hostile)
	cancelled := s.Submit(t, hostileDefinition(t, "hostile-cancelled"))
	s.AwaitTask(t, cancelled, "ask", "paused")
	s.cli(t, "runs", "cancel", cancelled, "--reason", hostile)
	s.put(t, hostileDefinition(t, "hostile-stored"))
	s.cli(t, "schedules", "pause", "hostile-stored", "--reason", hostile)
	s.cli(t, "nodes", "drain", "local-2", "--reason", hostile)

	profile := browsertest.NewProfile(t)
	for _, c := range []struct {
		path  string
		shows bool // a hostile text is on the page
	}{
		{"/", true},
		{"/ui/runs", false},
		{"/ui/runs?text=%3Cimg%20src%3Dx%20onerror%3Dpwned%3D1%3E", false},
		{"/ui/runs/" + id, true},
		{"/ui/runs/" + id + "/tasks/talk", true},
		{"/ui/runs/" + id + "/tasks/talk/log/search?q=img", true},
		{"/ui/runs/" + asking + "/tasks/ask", true},
		{"/ui/runs/" + asking, false},
		{"/ui/runs/" + cancelled, false},
		{"/ui/approvals", true},
		{"/ui/dead-letters", false},
		{"/ui/queue", false},
		{"/ui/nodes", true},
		{"/ui/nodes/local-2", true},
		{"/ui/workflows", true},
		{"/ui/workflows/hostile-stored", true},
		{"/ui/editor?from=hostile-stored", false}, // in a field
		{"/ui/nodes?label=%3Cimg%20src%3Dx%20onerror%3Dwindow.pwned%3D1%3E", true},
		{"/ui/schedules", true},
		{"/ui/schedules/hostile-stored", true},
	} {
		t.Run(c.path, func(t *testing.T) {
			tab := profile.Tab(s.Gateway).In(t)
			tab.Open(c.path)
			tab.WaitTrue("document.querySelector('main h1')")
			if c.shows {
				tab.WaitText("main", "<img")
			}
			checkHarmless(t, tab)
			tab.SetViewport(360)
			checkWidth(t, tab, c.path)
			tab.Check(t)
			tab.Close()
		})
	}
}

// checkHarmless fails the test if a hostile text has become a part of the page's markup.
func checkHarmless(t *testing.T, tab *browsertest.Tab) {
	t.Helper()
	found := browsertest.Eval[struct {
		Pwned    bool
		Elements []string
		Control  []string
		Turned   []string
	}](tab, `(() => {
		const texts = []
		for (const w = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT); w.nextNode();) texts.push(w.currentNode)
		const isolated = e => e && (["isolate", "isolate-override", "plaintext"].includes(getComputedStyle(e).unicodeBidi) || getComputedStyle(e).display != "inline")
		return {
			pwned: "pwned" in window,
			elements: [...document.querySelectorAll("main img, main script, main b, main i, [onerror], [onmouseover]")].map(e => e.outerHTML),
			control: texts.filter(n => /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/.test(n.data)).map(n => n.parentNode.outerHTML.slice(0, 300)),
			turned: texts.filter(n => /[\u202a-\u202e\u2066-\u2069]/.test(n.data) && !isolated(n.parentElement)).map(n => n.parentNode.outerHTML.slice(0, 300)),
		}
	})()`)
	if found.Pwned {
		t.Error("a text has run a script")
	}
	for what, list := range map[string][]string{"elements": found.Elements, "control characters": found.Control, "marks of direction": found.Turned} {
		if len(list) > 0 {
			t.Errorf("the page has %s of a user: %q", what, list)
		}
	}
}

// hostileDefinition returns a definition with a hostile text in every possible place. Its run waits for an approval
// without input, and fails with one.
func hostileDefinition(t *testing.T, name string) string {
	t.Helper()
	print := "printf '%s\\n' " + shellQuoted(hostile)
	text, err := json.Marshal(map[string]any{
		"name": name, "description": hostile,
		"inputs":   map[string]any{"in": map[string]any{"default": "", "description": hostile}},
		"schedule": map[string]any{"cron": "0 2 * * *", "input": map[string]any{"in": hostile}},
		"tasks": map[string]any{
			"ask": map[string]any{"type": "approval", "condition": "workflow.input['in'] == ''", "spec": map[string]any{"message": hostile}},
			"talk": map[string]any{
				"type": "shell", "condition": "workflow.input['in'] != ''",
				"env":   map[string]any{"HOSTILE": hostile},
				"spec":  map[string]any{"command": print + "; " + print + " >&2; printf '{\"said\": \"%s\"}' '<i>output' > \"$SWITCHYARD_OUTPUT\"; exit 1"},
				"retry": map[string]any{"maxRetries": 1, "backoffMs": 1},
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// shellQuoted quotes a text as one word for a shell.
func shellQuoted(s string) string { return fmt.Sprintf("'%s'", strings.ReplaceAll(s, "'", `'\''`)) }
