package browsertest

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// Finding is an accessibility problem of a page.
type Finding struct {
	// Rule is the name of the rule of axe-core, such as "label".
	Rule string `json:"id"`
	// Impact is "minor", "moderate", "serious" or "critical".
	Impact string `json:"impact"`
	// Help describes the requirement of the rule.
	Help string `json:"help"`
	// Nodes holds the affected elements.
	Nodes []struct {
		// Target holds the selectors that lead to the element.
		Target []any `json:"target"`
		// Summary describes the problem and its fixes.
		Summary string `json:"failureSummary"`
	} `json:"nodes"`
}

// isSerious reports whether a finding fails a test.
func (f Finding) isSerious() bool { return f.Impact == "serious" || f.Impact == "critical" }

// String describes a finding and its elements.
func (f Finding) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s): %s", f.Rule, f.Impact, f.Help)
	for _, node := range f.Nodes {
		fmt.Fprintf(&b, "\n  %v: %s", node.Target, strings.ReplaceAll(node.Summary, "\n", "\n    "))
	}
	return b.String()
}

// Findings returns all findings of axe-core on the current page.
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

// CheckAccessibility fails the test for each axe-core finding with a serious or critical impact. If this machine cannot
// provide axe-core, it skips the test, or fails it if CI is set.
func (tab *Tab) CheckAccessibility(t testing.TB) {
	t.Helper()
	for _, finding := range tab.Findings() {
		if finding.isSerious() {
			t.Errorf("%s: %s", tab.URL(), finding)
		}
	}
}
