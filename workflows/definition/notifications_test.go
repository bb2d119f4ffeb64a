package definition

import (
	"strings"
	"testing"
)

func TestEntriesOfTheFleetAreCheckedAsThoseOfDefinitions(t *testing.T) {
	for text, want := range map[string]string{
		"- { to: ops, on: [failed] }\n- { to: team, on: [late], if: run.name == 'x', message: \"${{ run.id }}\" }\n": "",
		`[{"to": "ops", "on": ["failed"]}]`:                        "",
		"to: ops\non: [failed]\n":                                  "notify.yaml:1:1: this is a mapping; it must be a list of entries\n    to: ops\n    ^\n  write - { to: TARGET, on: [failed] }",
		"- { too: ops, on: [failed] }\n":                           "did you mean to?",
		"- { to: ops, on: [failure] }\n":                           `notify.yaml:1:19: notify[0].on[0] is "failure"; it must be`,
		"- { to: ops }\n":                                          "notify.yaml:1:3: notify[0].on",
		"- { to: 'https://x', on: [failed] }\n":                    "`switchyard notifications put`",
		"- { to: ops, on: [failed], if: runs.name == 'x' }\n":      "notify.yaml:1:32: notify[0].if",
		"- { to: ops, on: [failed], message: '${{ run.nam }}' }\n": "did you mean name?",
		"- to: [\n": "notify.yaml:",
	} {
		entries, err := ParseNotify("notify.yaml", []byte(text))
		switch {
		case want == "" && (err != nil || len(entries) == 0 || entries[0].GetTo() != "ops"):
			t.Errorf("%s: %v, %v", text, entries, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
