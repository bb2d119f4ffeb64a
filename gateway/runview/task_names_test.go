package runview

import "testing"

func TestUnknownTaskSuggestsSimilarNames(t *testing.T) {
	tasks := []string{"build", "deploy", "lint", "test", "unit-test", "verify"}
	for name, want := range map[string]string{
		"biuld": "did you mean build?",
		"TEST":  "did you mean test?",
		"x":     "its tasks are build, deploy, lint, test, verify, ...",
	} {
		if got := suggestNames(name, tasks); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
