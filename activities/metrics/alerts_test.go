package metrics

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestAlerts checks that every rule uses metrics and labels of a scrape.
func TestAlerts(t *testing.T) {
	t.Parallel()
	rules, err := os.Open("../../dev/deploy/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer rules.Close()
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	reader := yaml.NewDecoder(rules)
	reader.KnownFields(true)
	if err := reader.Decode(&file); err != nil {
		t.Fatal(err)
	}
	shown := map[string]string{} // labels in a scrape, by name
	for _, line := range scrape(t, filled(t)) {
		name, labels, _ := strings.Cut(strings.Fields(line)[0], "{")
		shown[name] += "{" + labels
	}
	figure := regexp.MustCompile(`\b((?:switchyard|temporal)_[a-z_]+)(?:\{(\w+)=)?`)
	label := regexp.MustCompile(`by \(([^)]*)\)|\$labels\.(\w+)`)
	seen := map[string]bool{}
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			if seen[rule.Alert] || rule.Alert == "" || rule.Labels["severity"] == "" || rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
				t.Errorf("alert %q is there twice, or lacks its name, severity, summary or description", rule.Alert)
			}
			seen[rule.Alert] = true
			found := figure.FindAllStringSubmatch(rule.Expr, -1)
			if len(found) == 0 {
				t.Errorf("%s: %s names no figure", rule.Alert, rule.Expr)
			}
			labels := "le=\""
			for _, f := range found {
				if shown[f[1]] == "" {
					t.Errorf("%s: no scrape shows %s", rule.Alert, f[1])
				}
				if f[2] != "" && !strings.Contains(shown[f[1]], f[2]+`="`) {
					t.Errorf("%s: %s has no label %s", rule.Alert, f[1], f[2])
				}
				labels += shown[f[1]]
			}
			for _, named := range label.FindAllStringSubmatch(rule.Expr+rule.Annotations["summary"]+rule.Annotations["description"], -1) {
				for _, one := range strings.Split(named[1]+named[2], ", ") {
					if !strings.Contains(labels, one+`="`) {
						t.Errorf("%s: nothing of it has the label %s", rule.Alert, one)
					}
				}
			}
		}
	}
	if len(seen) == 0 {
		t.Error("there are no alerts")
	}
}
