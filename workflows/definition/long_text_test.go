package definition

import (
	"strings"
	"testing"
)

// TestTextsThatAreTooLongForAProgramAreRefused checks that a text is refused where it is written, with its size and a remedy, and
// that the problem does not repeat the text.
func TestTextsThatAreTooLongForAProgramAreRefused(t *testing.T) {
	long := strings.Repeat("x", 140_000)
	for task, want := range map[string]string{
		"type: shell, spec: { command: [cat, LONG] }":                                                         "a.yaml:4:60: spec.command[1] has 140000 bytes; Linux allows at most 131071 in an argument",
		"type: shell, spec: { command: x }, env: { BIG: LONG }":                                               "a.yaml:4:71: env.BIG has 140000 bytes; Linux allows at most 131067 in a variable of this name",
		"type: container, spec: { image: i, command: x, args: [LONG] }":                                       "spec.args[0] has 140000 bytes",
		"type: k8s_job, spec: { image: i, env: [{ name: BIG, value: LONG }] }":                                "spec.env[0].value has 140000 bytes",
		"type: subagent, spec: { prompt: LONG, mcpServers: { a: { command: [x, LONG] } } }":                   "spec.mcpServers.a.command[1] has 140000 bytes",
		"type: shell, spec: { command: LONG, shell: [perl, -e] }":                                             "spec.command has 140000 bytes, and perl takes it as an argument",
		"type: shell, spec: { command: LONG }":                                                                "",
		"type: shell, spec: { command: LONG, shell: bash }":                                                   "",
		`type: shell, spec: { command: x }, env: { BIG: "${{ parent.a.stdout }} LONG" }`:                      "",
		"type: run, spec: { workflow: other, input: { args: [LONG] } }":                                       "",
		"type: k8s_job, spec: { image: i, command: x, template: { metadata: { annotations: { a: LONG } } } }": "",
	} {
		_, err := Parse("a.yaml", []byte(strings.ReplaceAll("name: a\ntasks:\n  a: { type: shell, spec: { command: x } }\n  t: { dependsOn: [a], "+task+" }\n", "LONG", long)))
		if want == "" {
			if err != nil {
				t.Errorf("%s: %.500v", task, err)
			}
			continue
		}
		if err == nil || len(err.Error()) > 2000 || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %.2000v, want %s", task, err, want)
		}
	}
}
