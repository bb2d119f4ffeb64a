package gatewayclient

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"http://a:7280":                         "http://a:7280",
		"a:7280":                                "http://a:7280",
		"https://a/,https://b/yard/":            "https://a,https://b/yard",
		" http://a:7280 , http://b:7280,c:7280": "http://a:7280,http://b:7280,http://c:7280",
	} {
		if got, err := Parse(text); err != nil || got.String() != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for text, says := range map[string]string{
		"":                             "the list of gateways is empty; name at least one",
		" , ":                          "the list of gateways is empty",
		"http://a:7280,":               "has an empty entry; remove the comma",
		"http://a:7280,,http://b:7280": "has an empty entry",
		"http://a:7280,https://b":      "http://a:7280 and https://b mix http and https; use one of them",
		"https://b,a:7280":             "https://b and http://a:7280 mix http and https",
		"http://a:7280,http://A:7280/": "gateway http://A:7280 appears twice",
		"http://a:7280,ftp://b":        `"ftp://b" is not a gateway URL such as http://host:7280`,
		"http://a:7280,http://b:x":     `"http://b:x" is not a gateway URL`,
		"http://a:7280?x=1":            "is not a gateway URL",
		"http://ann:secret@a:7280":     "http://ann:xxxxx@a:7280 contains a password",
	} {
		if got, err := Parse(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, %v, want %s", text, got, err, says)
		}
	}
}
