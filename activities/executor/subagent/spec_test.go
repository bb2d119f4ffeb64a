package subagent

import (
	"os"
	"path/filepath"
	"testing"

	"switchyard/activities/executor"
	v1 "switchyard/proto/switchyard/v1"
)

// TestTheKeyOfANodeGoesToItsProviderAlone checks that a task cannot have the key sent to a server that it names.
func TestTheKeyOfANodeGoesToItsProviderAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte("node-key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	e := New(Options{KeyFiles: map[string]string{v1.ProviderAnthropic: path, v1.ProviderOpenAI: path}})
	for _, test := range []struct{ provider, url, env, want string }{
		{v1.ProviderAnthropic, "", "", "node-key"},
		{v1.ProviderAnthropic, "https://api.anthropic.com", "", "node-key"},
		{v1.ProviderOpenAI, "https://api.openai.com/v1/", "", "node-key"},
		{v1.ProviderAnthropic, "https://api.openai.com/v1", "", ""},
		{v1.ProviderAnthropic, "http://api.anthropic.com", "", ""},
		{v1.ProviderAnthropic, "https://api.anthropic.com:8443", "", ""},
		{v1.ProviderAnthropic, "https://api.anthropic.com.example.com", "", ""},
		{v1.ProviderAnthropic, "https://api.anthropic.com@example.com", "", ""},
		{v1.ProviderOpenAI, "http://127.0.0.1:11434/v1", "", ""},
		{v1.ProviderOpenAI, "http://127.0.0.1:11434/v1", "task-key", "task-key"},
	} {
		a := executor.Attempt{Env: map[string]string{v1.KeyVariable(test.provider): test.env}}
		got, err := e.key(a, &v1.SubagentSpec{Provider: test.provider, BaseUrl: test.url})
		if err != nil || got != test.want {
			t.Errorf("%s at %q: key %q, %v; want %q", test.provider, test.url, got, err, test.want)
		}
	}
}
