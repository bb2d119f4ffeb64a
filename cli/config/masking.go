package config

import (
	"net/url"
	"slices"
	"strings"
)

const mask = "***"

// masked returns a value in the form in which it may be logged: secrets are removed, both whole settings and parts of
// URLs.
func masked(name, value string) string {
	if value == "" {
		return value
	}
	if isSecret(name) {
		return mask
	}
	u, err := url.Parse(value)
	if err != nil || u.Scheme == "" {
		return value
	}
	changed := false
	if _, set := u.User.Password(); set {
		u.User, changed = url.UserPassword(u.User.Username(), mask), true
	}
	query := u.Query()
	for key := range query {
		if isSecret(key) {
			query.Set(key, mask)
			changed = true
		}
	}
	if !changed {
		return value
	}
	u.RawQuery = query.Encode()
	return strings.ReplaceAll(u.String(), url.QueryEscape(mask), mask)
}

// isSecret reports whether the value of a setting of this name must not be logged.
func isSecret(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"token", "secret", "password", "credential", "key"}, func(word string) bool { return strings.Contains(name, word) })
}
