package definition

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
)

func TestExecutorAndRetriesOfOtherSystemsAreAccepted(t *testing.T) {
	want := parse(t, "a.yaml", "name: a\ndefaults: { type: shell, retry: { maxRetries: 1 } }\ntasks: { a: { spec: { command: x }, retry: { maxRetries: 2, backoffMs: 5 } }, b: { type: vps, spec: { image: y } } }")
	got := parse(t, "a.yaml", "name: a\ndefaults: { executor: shell, retries: 1 }\ntasks: { a: { spec: { command: x }, retries: 2, retry: { backoffMs: 5 } }, b: { executor: vps, spec: { image: y } } }")
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for document, want := range map[string]string{
		"executor: shell, type: shell, spec: { command: x }":                      "a.yaml:2:32: executor and type are two spellings",
		"type: shell, spec: { command: x }, retries: many":                        "a.yaml:2:59: retry.maxRetries is the string",
		"type: shell, spec: { command: x }, retries: 1, retry: { maxRetries: 2 }": "a.yaml:2:50: maxRetries and retries are two spellings",
	} {
		_, err := Parse("a.yaml", []byte("name: a\ntasks: { a: { "+document+" } }"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", document, err)
		}
	}
}
