package cli

import (
	"strings"

	"github.com/spf13/pflag"

	"switchyard/activities/gatewayclient"
)

// gatewaysValue is the value of --gateway: URLs that are separated by commas or given in several flags. They are not checked
// here, because the errors of flags repeat the value, which may contain a password.
type gatewaysValue struct {
	text  *string // "" for the default
	isSet bool
}

var (
	_ pflag.Value      = (*gatewaysValue)(nil)
	_ pflag.SliceValue = (*gatewaysValue)(nil)
)

// String returns the URLs, separated by commas.
func (g *gatewaysValue) String() string {
	if g.text == nil {
		return ""
	}
	return *g.text
}

// Type returns the name of the type for the help.
func (g *gatewaysValue) Type() string { return "strings" }

// Set adds URLs. The first call replaces the default.
func (g *gatewaysValue) Set(text string) error {
	if g.isSet {
		text = *g.text + "," + text
	}
	return g.Replace([]string{text})
}

// Append adds a URL.
func (g *gatewaysValue) Append(text string) error { return g.Set(text) }

// Replace sets the URLs. It refuses an empty list, which would otherwise mean the default.
func (g *gatewaysValue) Replace(texts []string) error {
	text := strings.Join(texts, ",")
	if text == "" {
		_, err := gatewayclient.Parse(text)
		return err
	}
	*g.text, g.isSet = text, true
	return nil
}

// GetSlice returns the URLs.
func (g *gatewaysValue) GetSlice() []string {
	if g.String() == "" {
		return nil
	}
	return strings.Split(*g.text, ",")
}
