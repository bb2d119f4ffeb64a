package model

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode"
)

// Providers.
const (
	providerAnthropic = "anthropic"
	providerOpenAI    = "openai"
)

// endpoint is the address of a provider, and the key for it.
type endpoint struct {
	provider string
	url      string // as the official client expects it
	host     string // for messages, with a path if it has one
	key      string
}

// providers holds the default address and the key variable of each provider.
var providers = map[string]struct{ url, keyVariable string }{
	providerAnthropic: {"https://api.anthropic.com", "ANTHROPIC_API_KEY"},
	providerOpenAI:    {"https://api.openai.com/v1", "OPENAI_API_KEY"},
}

// IsProviderAddress reports whether a base URL is empty or is the provider's own address over https.
func IsProviderAddress(provider, baseURL string) bool {
	if baseURL == "" {
		return true
	}
	u, err := url.Parse(baseURL)
	return err == nil && u.User == nil && strings.HasPrefix(providers[provider].url+"/", u.Scheme+"://"+u.Host+"/")
}

// newEndpoint validates the options and returns the endpoint.
func newEndpoint(o Options) (endpoint, error) {
	known, ok := providers[o.Provider]
	if !ok {
		return endpoint{}, fmt.Errorf("provider %q is unknown; use %q or %q", o.Provider, providerAnthropic, providerOpenAI)
	}
	e := endpoint{provider: o.Provider, key: strings.TrimSpace(o.Key)}
	if strings.ContainsFunc(e.key, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsPrint(r) }) {
		return endpoint{}, errors.New("the key of the model provider contains line breaks or other characters that no key has; " + e.keySources())
	}
	if o.BaseURL == "" {
		if e.key == "" {
			return endpoint{}, fmt.Errorf("no key for model provider %s; %s", o.Provider, e.keySources())
		}
		o.BaseURL = known.url
	}
	u, err := url.Parse(o.BaseURL)
	switch {
	case err != nil:
		return endpoint{}, errors.New("the base URL of the model provider is not a URL")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return endpoint{}, fmt.Errorf("the base URL %q of the model provider is not an http or https URL", u.Redacted())
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return endpoint{}, fmt.Errorf("the base URL of the model provider at %s has a user, a query or a fragment; remove them (%s)",
			u.Host, e.keySources())
	}
	u.Path = strings.TrimRight(u.Path, "/")
	switch {
	case o.Provider == providerAnthropic: // its client adds /v1
		u.Path = strings.TrimSuffix(u.Path, "/v1")
	case u.Path == "":
		u.Path = "/v1"
	}
	e.url, e.host = u.String()+"/", u.Host+u.Path
	return e, nil
}

// keySources explains where keys come from.
func (e endpoint) keySources() string {
	return fmt.Sprintf("the key is the task's secretEnv %s, else, at the provider's own address, the content of the node's --agent-key-file",
		providers[e.provider].keyVariable)
}
