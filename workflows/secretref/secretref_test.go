package secretref

import (
	"regexp"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Reference{
		"file:/run/secrets/token":   {File, "/run/secrets/token"},
		"file:/run/secrets/a b:c":   {File, "/run/secrets/a b:c"},
		"env:DEPLOY_TOKEN":          {Env, "DEPLOY_TOKEN"},
		"store:deploy-token":        {Store, "deploy-token"},
		"store:0.deploy_token.prod": {Store, "0.deploy_token.prod"},
	} {
		got, fault := Parse(text)
		if fault != nil || got != want || got.String() != text {
			t.Errorf("%s: %v, %v", text, got, fault)
		}
		if !regexp.MustCompile(Pattern).MatchString(text) {
			t.Errorf("the pattern refuses %s", text)
		}
	}
}

// TestFaultsNameTheRemedy checks the faults of texts that are not references, and that a pasted value is not repeated.
func TestFaultsNameTheRemedy(t *testing.T) {
	for text, want := range map[string]string{
		"":                                      "is empty; it must say where the value is|" + Forms,
		"vault:db":                              "has the unknown kind vault; the kinds are file, env and store|did you mean store:db? `switchyard secrets set db` stores its value",
		"vault:kv/db#pw":                        "has the unknown kind vault; the kinds are file, env and store|" + Forms,
		"flie:/x":                               "has the unknown kind flie; the kinds are file, env and store|did you mean file:?",
		"environment:X":                         "has the unknown kind environment; the kinds are file, env and store|did you mean env:?",
		"file:secrets/x":                        "has a relative path; nodes have no common working directory|write an absolute path, such as file:/run/secrets/token",
		"file:":                                 "has a relative path; nodes have no common working directory|write an absolute path, such as file:/run/secrets/token",
		"file:/":                                "does not name a file|write the path of a file, such as file:/run/secrets/token",
		"file:/run/secrets/":                    "does not name a file|write the path of a file, such as file:/run/secrets/token",
		"file:/run/secrets/../../srv/x":         "has a path with . or .. or // in it|did you mean file:/srv/x?",
		"file:/x\x00y":                          "has a path that is too long or invalid|",
		"file:/" + strings.Repeat("x", maxPath): "has a path that is too long or invalid|",
		"env:":                                  "does not name an environment variable: letters, digits and '_', the first not a digit|such as env:DEPLOY_TOKEN",
		"env:A-B":                               "does not name an environment variable: letters, digits and '_', the first not a digit|such as env:DEPLOY_TOKEN",
		"env:SWITCHYARD_TOKEN":                  "names a setting of the worker, which is not passed to tasks|store the value: `switchyard secrets set NAME`, and write store:NAME",
		"store:":                                "does not name a stored secret: at most 63 letters, digits, '.', '_' and '-', the first a letter or digit|such as store:deploy-token",
		"store:../auth/tokens/x":                "does not name a stored secret: at most 63 letters, digits, '.', '_' and '-', the first a letter or digit|such as store:deploy-token",
		"hunter2-hunter2":                       "is not a reference: it must say where the value is, not be the value|" + Forms,
		"admin:hunter2":                         "is not a reference: it must begin with file:, env: or store:, not be the value|" + Forms,
		"postgres://me:hunter2@db/main":         "is not a reference: it must begin with file:, env: or store:, not be the value|" + Forms,
		"-----BEGIN KEY-----\na:b":              "is not a reference: it must say where the value is, not be the value|" + Forms,
	} {
		_, fault := Parse(text)
		if fault == nil {
			t.Errorf("%q is accepted", text)
			continue
		}
		if got := fault.Reason + "|" + fault.Hint; got != want {
			t.Errorf("%q:\n got %s\nwant %s", text, got, want)
		}
		if strings.Contains(fault.Reason+fault.Hint, "hunter2") {
			t.Errorf("%q: the fault repeats the value", text)
		}
	}
}
