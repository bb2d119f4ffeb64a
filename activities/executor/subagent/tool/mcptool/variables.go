package mcptool

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// variable matches a reference to a variable of the task.
var variable = regexp.MustCompile(`\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([^}]*)\})`)

// modelKeys are the variables with the keys of models, which no server gets.
var modelKeys = []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY"}

// expandAll expands $NAME and ${NAME} in values with the variables of the task. path is the position of values in the
// spec, for errors.
func expandAll(values, env map[string]string, path string) (map[string]string, error) {
	var errs []error
	expanded := make(map[string]string, len(values))
	for _, key := range slices.Sorted(maps.Keys(values)) {
		value, err := expand(values[key], env)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s.%s: %w", path, key, err))
		}
		expanded[key] = value
	}
	return expanded, errors.Join(errs...)
}

// expand replaces ${NAME} in one value by the variable of the task. It returns an error for each variable that is not set, and
// for the key of the agent's model.
func expand(value string, env map[string]string) (string, error) {
	var errs []error
	expanded := variable.ReplaceAllStringFunc(value, func(found string) string {
		name := strings.Trim(found, "${}")
		set, ok := env[name]
		switch {
		case slices.Contains(modelKeys, name):
			errs = append(errs, fmt.Errorf("%s is the key of the agent's model, which no tool gets; give the server a key of its own by another variable", found))
		case !ok:
			errs = append(errs, fmt.Errorf("variable %s is not set for the task; set it in `env` or `secretEnv`", found))
		}
		return set
	})
	return expanded, errors.Join(errs...)
}
