package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"switchyard/workflows/nearest"
	"switchyard/workflows/structs"
)

// readArguments decodes the arguments of a call.
func readArguments(data json.RawMessage) (map[string]any, error) {
	if data = bytes.TrimSpace(data); len(data) == 0 || string(data) == "null" {
		return map[string]any{}, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var value any
	err := decoder.Decode(&value)
	if err == nil && decoder.More() {
		err = errors.New("there is more than one value")
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("the arguments are not valid JSON: %w", err)
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the arguments are %s; send an object", kindOf(value))
	}
	return object, structs.CheckJSON(data)
}

// checkArguments returns every mismatch between arguments and the schema of a tool.
func checkArguments(s schema, arguments map[string]any) []string {
	var problems []string
	required, _ := s["required"].([]string)
	for _, name := range required {
		if value, ok := arguments[name]; !ok || value == "" {
			problems = append(problems, fmt.Sprintf("%s is missing: %s", name, describe(s, name)))
		}
	}
	return append(problems, check(s, arguments, "")...)
}

// describe returns the description of an argument.
func describe(s schema, name string) string {
	properties, _ := s["properties"].(map[string]any)
	property, _ := properties[name].(map[string]any)
	text, _ := property["description"].(string)
	return text
}

// check returns the mismatches between a value at a path and a schema. It leaves ranges and patterns to the gateway.
func check(s schema, value any, path string) []string {
	if types := typesOf(s); len(types) > 0 && !slices.ContainsFunc(types, func(t string) bool { return isOf(value, t) }) {
		return []string{fmt.Sprintf("%s is %s; it must be %s", path, kindOf(value), strings.Join(articles(types), " or "))}
	}
	if words, ok := s["enum"].([]any); ok && value != "" && !slices.Contains(words, value) {
		return []string{fmt.Sprintf("%s is %s, which is not one of %s%s", path, formatValue(value), list(words), nearWord(value, words))}
	}
	if text, ok := value.(string); ok && s["format"] == "date-time" {
		if _, err := time.Parse(time.RFC3339, text); err != nil {
			return []string{fmt.Sprintf("%s is %s; it must be a time such as 2026-01-15T01:30:00Z", path, formatValue(value))}
		}
	}
	var problems []string
	switch value := value.(type) {
	case map[string]any:
		problems = checkObject(s, value, path)
	case []any:
		if items, ok := s["items"].(map[string]any); ok {
			for i, each := range value {
				problems = append(problems, check(items, each, path+"["+strconv.Itoa(i)+"]")...)
			}
		}
	}
	return problems
}

func checkObject(s schema, object map[string]any, path string) []string {
	var problems []string
	properties, _ := s["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(object)) {
		place := name
		if path != "" {
			place = path + "." + name
		}
		if property, ok := properties[name].(map[string]any); ok {
			problems = append(problems, check(property, object[name], place)...)
			continue
		}
		switch more := s["additionalProperties"].(type) {
		case map[string]any:
			problems = append(problems, check(more, object[name], place)...)
		case bool:
			if !more {
				problems = append(problems, unknownName(place, name, slices.Sorted(maps.Keys(properties))))
			}
		}
	}
	return problems
}

// unknownName returns the error text for an unknown argument, with the nearest name or all known names.
func unknownName(place, name string, known []string) string {
	if hint := nearest.DidYouMean(name, known); hint != "" {
		return place + " is unknown; " + hint
	}
	if len(known) == 0 {
		return place + " is unknown; there are no arguments"
	}
	return fmt.Sprintf("%s is unknown; known are %s", place, strings.Join(known, ", "))
}

func nearWord(value any, words []any) string {
	text, ok := value.(string)
	if !ok {
		return ""
	}
	var known []string
	for _, word := range words {
		known = append(known, fmt.Sprint(word))
	}
	if hint := nearest.DidYouMean(text, known); hint != "" {
		return "; " + hint
	}
	return ""
}

func list(words []any) string {
	var texts []string
	for _, word := range words {
		texts = append(texts, fmt.Sprint(word))
	}
	return strings.Join(texts, ", ")
}

// typesOf returns the types that a schema allows. An empty list means any type.
func typesOf(s schema) []string {
	switch types := s["type"].(type) {
	case string:
		return []string{types}
	case []string:
		return types
	case []any:
		var all []string
		for _, t := range types {
			all = append(all, fmt.Sprint(t))
		}
		return all
	}
	return nil
}

func isOf(value any, kind string) bool {
	switch kind {
	case "integer":
		number, ok := value.(json.Number)
		_, err := number.Int64()
		return ok && err == nil
	case "null":
		return value == nil
	}
	return strings.HasSuffix(kindOf(value), " "+kind)
}

// kindOf returns the JSON type of a value with its article.
func kindOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case json.Number, float64:
		return "a number"
	case string:
		return "a string"
	case []any:
		return "an array"
	}
	return "an object"
}

func articles(types []string) []string {
	var all []string
	for _, t := range types {
		if t == "null" {
			continue
		}
		if strings.ContainsRune("aeiou", rune(t[0])) {
			all = append(all, "an "+t)
		} else {
			all = append(all, "a "+t)
		}
	}
	return all
}

// formatValue formats a value for an error text, cut to 60 bytes.
func formatValue(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return kindOf(value)
	}
	return cutText(string(data), 60)
}
