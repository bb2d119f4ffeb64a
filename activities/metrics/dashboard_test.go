package metrics

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
)

func get(t *testing.T, url string) string {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s %v", url, res.Status, err)
	}
	return string(body)
}

// TestDashboard checks that every query of the dashboard uses metrics and labels of a scrape, and that every metric of
// Switchyard is drawn.
func TestDashboard(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../dev/grafana/switchyard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	shown := map[string]string{} // labels in a scrape, by name
	for _, line := range scrape(t, filled(t)) {
		name, labels, _ := strings.Cut(strings.Fields(line)[0], "{")
		shown[name] = "{" + labels
	}
	drawn := map[string]bool{}
	name := regexp.MustCompile(`\b(switchyard|worker|temporal)_[a-z_]+`)
	by := regexp.MustCompile(`by \(([^)]*)\)`)
	for _, panel := range dashboard.Panels {
		if len(panel.Targets) == 0 {
			t.Errorf("panel %q draws nothing", panel.Title)
		}
		for _, target := range panel.Targets {
			found := name.FindAllString(target.Expr, -1)
			if len(found) == 0 {
				t.Errorf("panel %q: %s names no figure", panel.Title, target.Expr)
			}
			for _, figure := range found {
				drawn[strings.TrimSuffix(figure, "_bucket")] = true
				labels, ok := shown[figure]
				if !ok {
					t.Errorf("panel %q draws %s, which no scrape shows", panel.Title, figure)
					continue
				}
				for _, group := range by.FindAllStringSubmatch(target.Expr, -1) {
					for _, label := range strings.Split(group[1], ", ") {
						if !strings.Contains(labels, label+`="`) {
							t.Errorf("panel %q groups %s by %s, a label that it lacks: %s", panel.Title, figure, label, labels)
						}
					}
				}
			}
		}
	}
	for _, line := range ours(scrape(t, filled(t))) {
		figure, _, _ := strings.Cut(strings.Fields(line)[0], "{")
		figure = strings.TrimSuffix(strings.TrimSuffix(figure, "_sum"), "_count")
		if !strings.HasPrefix(figure, "temporal_") && !drawn[figure] {
			t.Errorf("no panel draws %s", figure)
		}
	}
}
