package shell

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"switchyard/activities/executor/shell/procfs"
)

const ownPrefix = "SWITCHYARD_"

// inheritedVariables are the variables of the node that every program inherits: the user, output settings, and
// the locations of the machine's tools, caches and certificates. None of them holds a credential. A name that
// ends in * matches all names with that prefix.
var inheritedVariables = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TERM", "NO_COLOR",
	"LANG", "LANGUAGE", "LC_*", "TZ",
	"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME",
	"LD_LIBRARY_PATH", "PKG_CONFIG_PATH", "CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS",
	"GOPATH", "GOROOT", "GOBIN", "GOCACHE", "GOMODCACHE", "GOFLAGS", "GOTOOLCHAIN",
	"CARGO_HOME", "RUSTUP_HOME", "JAVA_HOME", "NVM_DIR", "PYENV_ROOT", "VIRTUAL_ENV",
}

// sandboxVariables are the inherited variables that a program in a sandbox gets: the search path and output
// settings.
var sandboxVariables = []string{"PATH", "LANG", "LANGUAGE", "LC_*", "TZ"}

// filterVariables returns the variables of an environment that match names and are not hidden. It always excludes
// SWITCHYARD_* variables: the worker's own settings, one of which may be a token, and the variables of a task
// that the worker itself runs in.
func filterVariables(environ, names []string, isHidden func(name string) bool) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		key, _, _ := strings.Cut(entry, "=")
		return strings.HasPrefix(key, ownPrefix) || isHidden != nil && isHidden(key) || !slices.ContainsFunc(names, func(name string) bool { return matches(key, name) })
	})
}

func matches(key, name string) bool {
	if prefix, ok := strings.CutSuffix(name, "*"); ok {
		return strings.HasPrefix(key, prefix)
	}
	return key == name
}

var passName = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*\*?|\*)$`)

// CheckPassName returns an error if a name is not valid in Options.PassEnv.
func CheckPassName(name string) error {
	switch {
	case strings.HasPrefix(name, ownPrefix):
		return fmt.Errorf("%s is a Switchyard setting and cannot be passed to tasks; set it in the task's env", name)
	case !passName.MatchString(name):
		return fmt.Errorf("%q is neither a variable name, such as SSH_AUTH_SOCK, nor a prefix, such as AWS_*", name)
	}
	return nil
}

// environment returns the environment of a program: the node's variables, overridden by the attempt's, then PWD,
// so that no stale one is inherited, and the marker.
func environment(node []string, task map[string]string, dir, id string) ([]string, error) {
	if hasNUL(id) {
		return nil, errors.New("the attempt's id holds a NUL byte")
	}
	all := make([]string, 0, len(node)+len(task)+2)
	all = append(all, procfs.Marker+"="+id)
	for _, entry := range node {
		key, _, _ := strings.Cut(entry, "=")
		if _, over := task[key]; !over && (key != "PWD" || dir == "") {
			all = append(all, entry)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(task)) {
		value := task[key]
		if key == "" || strings.ContainsAny(key, "=\x00") {
			return nil, fmt.Errorf("%q is not a valid name of an environment variable", key)
		}
		if hasNUL(value) {
			return nil, fmt.Errorf("the value of env.%s contains a NUL character, which an environment variable cannot hold", key)
		}
		if key != procfs.Marker {
			all = append(all, key+"="+value)
		}
	}
	if _, over := task["PWD"]; !over && dir != "" {
		all = append(all, "PWD="+dir)
	}
	return all, nil
}

// lookup returns the value of a variable, or "".
func lookup(environ []string, key string) string {
	for _, entry := range environ {
		if value, ok := strings.CutPrefix(entry, key+"="); ok {
			return value
		}
	}
	return ""
}
