package model

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"switchyard/dev/scriptedmodel"
)

// TestEnvironmentIsIgnored sets all variables that the official clients read. It is not parallel.
func TestEnvironmentIsIgnored(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the environment chose the address") }))
	defer elsewhere.Close()
	const mark = "from-environment"
	for _, name := range []string{
		"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE", "ANTHROPIC_IDENTITY_TOKEN", "ANTHROPIC_ORGANIZATION_ID",
		"ANTHROPIC_WORKSPACE_ID", "ANTHROPIC_FEDERATION_RULE_ID", "ANTHROPIC_SERVICE_ACCOUNT_ID", "ANTHROPIC_SCOPE",
		"OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_WEBHOOK_SECRET",
	} {
		t.Setenv(name, mark)
	}
	t.Setenv("ANTHROPIC_BASE_URL", elsewhere.URL)
	t.Setenv("OPENAI_BASE_URL", elsewhere.URL+"/v1")
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Custom: "+mark)
	t.Setenv("ANTHROPIC_CONFIG_DIR", t.TempDir())
	t.Setenv("ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE", "content")

	model, server := serve(t, scriptedmodel.Rule{Reply: scriptedmodel.Reply{Text: "ok"}})
	for _, provider := range []string{providerAnthropic, providerOpenAI} {
		if _, err := ask(t, provider, server, nil).Reply(bounded(t), says("go"), nil); err != nil {
			t.Errorf("%s: %v", provider, err)
		}
		if _, err := New(Options{Provider: provider}); err == nil {
			t.Errorf("%s: the environment supplied a key", provider)
		}
		e := failure(t, ask(t, provider, server, func(o *Options) { o.Key = "" }), says("go"))
		if !strings.Contains(e.Error(), "the task has none") {
			t.Errorf("%s: %v", provider, e)
		}
	}
	requests := model.Requests()
	if len(requests) != 4 {
		t.Fatalf("%d requests", len(requests))
	}
	for i, r := range requests {
		if r.IsKeyRight != (i%2 == 0) {
			t.Errorf("request %d: key right %v", i, r.IsKeyRight)
		}
		for name, values := range r.Header {
			if text := strings.Join(values, " "); strings.Contains(text, mark) || strings.HasPrefix(name, "Openai-") || i%2 == 1 && name == "Authorization" {
				t.Errorf("request %d has the header %s: %s", i, name, text)
			}
		}
	}
}
