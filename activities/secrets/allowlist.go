package secrets

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"switchyard/workflows/secretref"
)

// Allowlist determines which files and environment variables of a node tasks may use as secrets. The zero value allows
// none. An Allowlist does not apply to stored secrets.
type Allowlist struct {
	all      bool
	patterns []secretref.Reference
}

// AllowAll returns an Allowlist of every file and variable, for a machine whose owner also submits the runs.
func AllowAll() Allowlist { return Allowlist{all: true} }

// ParseAllowlist parses patterns such as "file:/run/secrets/*" and "env:DEPLOY_*". A * matches any text without a slash.
func ParseAllowlist(texts []string) (Allowlist, error) {
	var l Allowlist
	for _, text := range texts {
		kind, pattern, _ := strings.Cut(text, ":")
		_, err := path.Match(pattern, "") // Match reports a malformed pattern whatever the name is
		switch {
		case kind == secretref.Store:
			return l, fmt.Errorf("%q: stored secrets need no entry; who submits a run must have the role that they ask for", text)
		case kind != secretref.File && kind != secretref.Env || pattern == "":
			return l, fmt.Errorf("%q is neither file:PATTERN nor env:PATTERN, such as file:/run/secrets/* or env:DEPLOY_*", text)
		case err != nil:
			return l, fmt.Errorf("%q is not a pattern: %w", text, err)
		case kind == secretref.File && (!strings.HasPrefix(pattern, "/") || path.Clean(pattern) != pattern):
			return l, fmt.Errorf("%q: the path must be absolute, without . or .. or // in it, such as file:/run/secrets/*", text)
		case kind == secretref.Env && matches(pattern, searchPath):
			return l, fmt.Errorf("%q covers PATH, and tasks do not inherit secret variables; use a narrower pattern, such as env:DEPLOY_*", text)
		}
		l.patterns = append(l.patterns, secretref.Reference{Kind: kind, Name: pattern})
	}
	return l, nil
}

// Allows reports whether tasks may use a file or a variable as a secret.
func (l Allowlist) Allows(ref secretref.Reference) bool {
	return l.all || l.matches(ref)
}

// Patterns returns the patterns of the list, or all = true if it allows every file and variable.
func (l Allowlist) Patterns() (patterns []string, all bool) {
	for _, p := range l.patterns {
		patterns = append(patterns, p.String())
	}
	return patterns, l.all
}

// Hides reports whether a variable of the worker's environment is a secret. Only tasks that name it get it; no other task
// inherits it.
func (l Allowlist) Hides(variable string) bool {
	return l.matches(secretref.Reference{Kind: secretref.Env, Name: variable})
}

func (l Allowlist) matches(ref secretref.Reference) bool {
	return slices.ContainsFunc(l.patterns, func(p secretref.Reference) bool { return p.Kind == ref.Kind && matches(p.Name, ref.Name) })
}

// searchPath is a variable that every task needs.
const searchPath = "PATH"

func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}
