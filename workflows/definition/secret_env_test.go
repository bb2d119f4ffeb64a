package definition

import (
	"os"
	"strings"
	"testing"

	v1 "switchyard/proto/switchyard/v1"
)

// Problems about a value that was written in place of a reference do not repeat the value, for a document or a message.
func TestPastedSecretsAreNotRepeated(t *testing.T) {
	text, err := os.ReadFile("testdata/bad/secret-env.yaml")
	if err != nil {
		t.Fatal(err)
	}
	task := &v1.TaskDefinition{Type: v1.TypeShell, Spec: spec(t, map[string]any{"command": "x"}), SecretEnv: map[string]string{
		"A": "correct-horse", "B": "ghp_16C7e42F", "C": "file:correct-horse", "D": "store:/correct-horse",
	}}
	_, ofDocument := Parse("a.yaml", text)
	_, ofMessage := Complete(&v1.Definition{Name: "a", Tasks: map[string]*v1.TaskDefinition{"t": task}})
	for _, err := range []error{ofDocument, ofMessage} {
		if err == nil || strings.Count(err.Error(), "secretEnv.") < 4 {
			t.Fatal(err)
		}
		for _, value := range []string{"correct-horse", "ghp_16C7e42F"} {
			if strings.Contains(err.Error(), value) {
				t.Errorf("%s is repeated:\n%v", value, err)
			}
		}
	}
}
