package shell

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	// claimVariable marks every process of an attempt with the attempt's id.
	claimVariable = "SWITCHYARD_CLAIM"
	ownPrefix     = "SWITCHYARD_"
)

// withoutOwn leaves out the worker's own settings, of which one may be a
// token, and in a worker that is itself a task the variables of that task.
func withoutOwn(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		return strings.HasPrefix(entry, ownPrefix)
	})
}

// environment is what a program sees: the node's variables, over them the
// attempt's, then where it runs, so that no stale PWD is inherited, and the mark.
func environment(node []string, task map[string]string, dir, id string) ([]string, error) {
	if strings.IndexByte(id, 0) >= 0 {
		return nil, errors.New("the attempt's id holds a NUL byte")
	}
	all := make([]string, 0, len(node)+len(task)+2)
	all = append(all, claimVariable+"="+id)
	for _, entry := range node {
		key, _, _ := strings.Cut(entry, "=")
		if _, over := task[key]; !over && (key != "PWD" || dir == "") {
			all = append(all, entry)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(task)) {
		value := task[key]
		if key == "" || strings.ContainsAny(key, "=\x00") || strings.IndexByte(value, 0) >= 0 {
			return nil, fmt.Errorf("environment variable %q is malformed", key)
		}
		if key != claimVariable {
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
