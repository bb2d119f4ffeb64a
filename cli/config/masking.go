package config

import (
	"net/url"
	"slices"
	"strings"
)

const mask = "***"

// masked returns a value as it may be logged: without secrets, whether they are a
// setting of their own or a part of a URL.
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

// isSecret reports whether the value of such a name must not be logged.
func isSecret(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"token", "secret", "password", "credential", "key"}, func(word string) bool { return strings.Contains(name, word) })
}
