package definition

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestRunsThatAWorkflowAlwaysStartsAreKnown checks which stored workflows count as started by every run that completes.
func TestRunsThatAWorkflowAlwaysStartsAreKnown(t *testing.T) {
	t.Parallel()
	const first = "first: {type: shell, spec: {command: x}}, "
	for name, tt := range map[string]struct {
		tasks string
		want  string
	}{
		"alone":                 {"a: {type: run, spec: {workflow: w}}", "w"},
		"after a task":          {first + "a: {type: run, dependsOn: [first], spec: {workflow: w}}", "w"},
		"whatever happens":      {first + "a: {type: run, dependsOn: [first], when: always, spec: {workflow: w}}", "w"},
		"fanned out":            {"a: {type: run, foreach: [1, 2], spec: {workflow: w}}, b: {type: run, matrix: {x: [1]}, spec: {workflow: v}}", "v w"},
		"inline":                {"a: {type: run, spec: {definition: {name: x, tasks: {b: {type: run, spec: {workflow: w}}}}}}", "w"},
		"two":                   {"a: {type: run, spec: {workflow: w}}, b: {type: run, dependsOn: [a], spec: {workflow: v}}", "v w"},
		"with a condition":      {`a: {type: run, condition: "workflow.input.n > 0", spec: {workflow: w}}`, ""},
		"under a condition":     {`c: {type: shell, condition: "workflow.input.n > 0", spec: {command: x}}, a: {type: run, dependsOn: [c], spec: {workflow: w}}`, ""},
		"inside a condition":    {`a: {type: run, spec: {definition: {name: x, tasks: {b: {type: run, condition: "workflow.input.n > 0", spec: {workflow: w}}}}}}`, ""},
		"after a failure":       {first + "a: {type: run, dependsOn: [first], when: one_failed, spec: {workflow: w}}", ""},
		"after an approval":     {"ok: {type: approval}, a: {type: run, dependsOn: [ok], spec: {workflow: w}}", ""},
		"for a computed list":   {`a: {type: run, foreach: workflow.input.list, spec: {workflow: w}}`, ""},
		"under a computed name": {`a: {type: run, spec: {workflow: "${{ workflow.input.name }}"}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			def, err := Parse("f.yaml", []byte("{name: top, inputs: {n: {type: integer}, list: {type: list}, name: {}}, tasks: {"+tt.tasks+"}}"))
			if err != nil {
				t.Fatal(err)
			}
			if got := CertainRuns(def); !slices.Equal(got, strings.Fields(tt.want)) {
				t.Errorf("it always starts %v, want %s", got, tt.want)
			}
		})
	}
}

// TestSelfCallIsWarnedOf checks that a definition that always starts its own name has a warning, at that place.
func TestSourcesFromGitAreChecked(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{git: 'https://example.com/app.git', ref: release/1.x, path: services/a, secret: 'store:key'}": "",
		"{git: 'git@example.com:team/app.git', ref: v1.0.0}":                                            "",
		"{git: 'file:///srv/app.git'}":                                                                  "",
		"{git: app, dir: .}":                                                                            "source.git and source.dir exclude each other",
		"{}":                                                                                            "source names neither a folder nor a repository",
		"https://example.com/app.git":                                                                   "write source: { git: https://example.com/app.git }",
		"{dir: ., ref: main}":                                                                           "ref, path and secret of a source have no effect without git",
		"{git: 'https://ann:sesame@example.com/app.git'}":                                               "source.git has a password in its URL",
		"{git: /srv/app.git}":                                                                           "source.git \"/srv/app.git\" is not the URL of a repository",
		"{git: 'ext::sh -c id'}":                                                                        "is not the URL of a repository",
		"{git: 'https://example.com/a', ref: --upload-pack=x}":                                          "is not the name of a branch or tag",
		"{git: 'https://example.com/a', ref: '${{ workflow.input.ref }}'}":                              "not in source.ref",
		"{git: 'https://example.com/a', path: ../x}":                                                    "leads out of the repository",
		"{git: 'https://example.com/a', secret: sesame}":                                                "source.secret is not a reference",
	} {
		_, err := Parse("f.yaml", []byte("name: a\nsource: "+text+"\ntasks: {a: {type: shell, spec: {command: x}}}\n"))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sesame")) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestSelfCallIsWarnedOf(t *testing.T) {
	t.Parallel()
	for tasks, want := range map[string]int{
		"a: {type: run, spec: {workflow: top}}":                                                             1,
		"a: {type: run, spec: {workflow: other}}":                                                           0,
		`a: {type: run, condition: "workflow.input.n > 0", spec: {workflow: top}}`:                          0,
		"a: {type: run, spec: {definition: {name: other, tasks: {b: {type: run, spec: {workflow: top}}}}}}": 1,
	} {
		checked, err := ParseChecked("f.yaml", []byte(fmt.Sprintf("{name: top, inputs: {n: {type: integer}}, tasks: {%s}}", tasks)))
		if err != nil || len(checked.Warnings) != want || want > 0 && !strings.HasSuffix(checked.Warnings[0].GetPath(), "spec.workflow") {
			t.Errorf("%s: %v, %v", tasks, checked.Warnings, err)
		}
	}
}
