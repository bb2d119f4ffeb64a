package browsertest

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// Finding is something that keeps a person from using a page.
type Finding struct {
	// Rule is the name of the rule of axe-core, such as "label".
	Rule string `json:"id"`
	// Impact is "minor", "moderate", "serious" or "critical".
	Impact string `json:"impact"`
	// Help says what the rule demands.
	Help string `json:"help"`
	// Nodes has the elements.
	Nodes []struct {
		// Target has the selectors that lead to the element.
		Target []any `json:"target"`
		// Summary says what is wrong, and what would mend it.
		Summary string `json:"failureSummary"`
	} `json:"nodes"`
}

// isSerious reports whether a finding fails a test.
func (f Finding) isSerious() bool { return f.Impact == "serious" || f.Impact == "critical" }

// String returns a finding with its elements.
func (f Finding) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s): %s", f.Rule, f.Impact, f.Help)
	for _, node := range f.Nodes {
		fmt.Fprintf(&b, "\n  %v: %s", node.Target, strings.ReplaceAll(node.Summary, "\n", "\n    "))
	}
	return b.String()
}

// Findings returns all findings of axe-core on the page as it is now.
func (tab *Tab) Findings() []Finding {
	tab.t.Helper()
	if !Eval[bool](tab, "!!window.axe") {
		source, err := os.ReadFile(axePath(tab.t))
		if err != nil {
			tab.t.Fatal(err)
		}
		Eval[any](tab, string(source)+"\n;undefined")
	}
	return Eval[[]Finding](tab, `axe.run(document, {resultTypes: ["violations"]}).then(r => r.violations.map(
		v => ({id: v.id, impact: v.impact, help: v.help, nodes: v.nodes.map(n => ({target: n.target, failureSummary: n.failureSummary}))})))`)
}

// CheckAccessibility fails the test for each finding of axe-core of a serious or critical impact. It skips the test if this
// machine cannot have axe-core, and fails it where CI is set.
func (tab *Tab) CheckAccessibility(t testing.TB) {
	t.Helper()
	for _, finding := range tab.Findings() {
		if finding.isSerious() {
			t.Errorf("%s: %s", tab.URL(), finding)
		}
	}
}
