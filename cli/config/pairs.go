package config

import (
	"strings"

	"switchyard/cli/exit"
)

// ParsePairs parses the "key=value" pairs of a flag; values stay strings.
func ParsePairs(flag string, pairs []string) (map[string]string, error) {
	fields := map[string]string{}
	for _, pair := range pairs {
		key, text, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, exit.Usagef("--%s %q: write key=value", flag, pair)
		}
		fields[key] = text
	}
	return fields, nil
}
