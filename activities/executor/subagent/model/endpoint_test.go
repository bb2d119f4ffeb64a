package model

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"switchyard/dev/scriptedmodel"
)

func TestBaseURLsNameThePathOfRequests(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ provider, base, want string }{
		{providerAnthropic, "", "/v1/messages"},
		{providerAnthropic, "/v1/", "/v1/messages"},
		{providerAnthropic, "//", "/v1/messages"},
		{providerOpenAI, "", "/v1/chat/completions"},
		{providerOpenAI, "/", "/v1/chat/completions"},
		{providerOpenAI, "/v1//", "/v1/chat/completions"},
		{providerAnthropic, "/proxy", "/proxy/v1/messages"},
		{providerAnthropic, "/proxy/v1", "/proxy/v1/messages"},
		{providerAnthropic, "/proxy/v1/", "/proxy/v1/messages"},
		{providerOpenAI, "/api/v1", "/api/v1/chat/completions"},
		{providerOpenAI, "/v1beta/openai/", "/v1beta/openai/chat/completions"}, // not every server has a /v1
	} {
		got := ""
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got = r.URL.Path
			w.WriteHeader(http.StatusNotFound)
		}))
		defer server.Close()
		e := failure(t, ask(t, test.provider, server, func(o *Options) { o.BaseURL = server.URL + test.base }), says("go"))
		if got != test.want || e.Status != http.StatusNotFound {
			t.Errorf("%s at %s: path %s, error %v", test.provider, test.base, got, e)
		}
	}
}

func TestSpaceAroundKeysIsTrimmed(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, provider string) {
		_, server := serve(t, scriptedmodel.Rule{Reply: scriptedmodel.Reply{Text: "ok"}})
		for _, key := range []string{testKey + "\n", testKey + "\r\n", " \t" + testKey + " \n\n"} {
			c := ask(t, provider, server, func(o *Options) { o.Key = key })
			if _, err := c.Reply(bounded(t), says("go"), nil); err != nil {
				t.Errorf("key %q: %v", key, err)
			}
		}
	})
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	const base = "http://127.0.0.1:1"
	for _, test := range []struct {
		name string
		o    Options
		want string
	}{
		{"no provider", Options{Key: testKey}, `provider "" is unknown; use "anthropic" or "openai"`},
		{"unknown provider", Options{Provider: "OpenAI", Key: testKey}, `provider "OpenAI" is unknown`},
		{"no key", Options{Provider: providerAnthropic}, "no key for model provider anthropic; the key is the task's secretEnv ANTHROPIC_API_KEY"},
		{"blank key", Options{Provider: providerOpenAI, Key: "\n"}, "no key for model provider openai; the key is the task's secretEnv OPENAI_API_KEY"},
		{"two lines", Options{Provider: providerOpenAI, Key: testKey + "\n" + testKey}, "the key of the model provider contains line breaks"},
		{"header in the key", Options{Provider: providerAnthropic, Key: testKey + "\r\nX: y"}, "the key of the model provider contains line breaks"},
		{"other letters", Options{Provider: providerAnthropic, Key: testKey + "ä"}, "characters that no key has"},
		{"zero byte", Options{Provider: providerAnthropic, Key: testKey + "\x00"}, "characters that no key has"},
		{"no URL", Options{Provider: providerOpenAI, Key: testKey, BaseURL: "http://[::1"}, "is not a URL"},
		{"no scheme", Options{Provider: providerOpenAI, Key: testKey, BaseURL: "localhost:8080"}, "is not an http or https URL"},
		{"no host", Options{Provider: providerOpenAI, Key: testKey, BaseURL: "http:///v1"}, "is not an http or https URL"},
		{"file", Options{Provider: providerOpenAI, Key: testKey, BaseURL: "file:///v1"}, "is not an http or https URL"},
		{"user", Options{Provider: providerOpenAI, BaseURL: "http://me:" + testKey + "@host"}, "has a user, a query or a fragment"},
		{"query", Options{Provider: providerOpenAI, BaseURL: base + "?key=" + testKey}, "has a user, a query or a fragment"},
		{"fragment", Options{Provider: providerOpenAI, BaseURL: base + "#" + testKey}, "has a user, a query or a fragment"},
		{"user and file", Options{Provider: providerOpenAI, BaseURL: "file://me:" + testKey + "@host/v1"}, "is not an http or https URL"},
		{"stall", Options{Provider: providerOpenAI, BaseURL: base, StallTimeout: -1}, "must not be negative"},
	} {
		_, err := New(test.o)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %s", test.name, err, test.want)
		}
		if err != nil && strings.Contains(err.Error(), testKey) {
			t.Errorf("%s: the error contains the key: %v", test.name, err)
		}
	}
}
