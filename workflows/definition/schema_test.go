package definition

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"

	"switchyard/dev/golden"
	v1 "switchyard/proto/switchyard/v1"
)

func TestSchemaGolden(t *testing.T) {
	golden.Check(t, "testdata/schema.golden", string(Schema()))
}

// TestSchemaIsCurrent checks that the embedded model is the one that is linked in.
func TestSchemaIsCurrent(t *testing.T) {
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(describedModel, set); err != nil {
		t.Fatal(err)
	}
	linked := map[string]*descriptorpb.FileDescriptorProto{}
	for _, file := range []*descriptorpb.FileDescriptorProto{
		protodesc.ToFileDescriptorProto(v1.File_switchyard_v1_definition_proto),
		protodesc.ToFileDescriptorProto(v1.File_switchyard_v1_spec_proto),
	} {
		linked[file.GetName()] = file
	}
	if len(set.GetFile()) != len(linked) {
		t.Fatalf("%d files", len(set.GetFile()))
	}
	for _, file := range set.GetFile() {
		file.SourceCodeInfo = nil
		if !proto.Equal(file, linked[file.GetName()]) {
			t.Errorf("%s has changed; run dev/generate.sh", file.GetName())
		}
	}
}

func TestSchemaDescribesEverything(t *testing.T) {
	known := comments()
	for name := range known {
		if strings.TrimSpace(known[name]) == "" {
			t.Errorf("%s has no comment", name)
		}
	}
	if len(known) < 60 {
		t.Errorf("only %d comments", len(known))
	}
}

func TestSchemaAccepts(t *testing.T) {
	v := newValidator(t)
	for _, file := range goodFiles(t) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if faults := v.check(free(t, string(data))); len(faults) > 0 {
			t.Errorf("%s: %v", file, faults)
		}
	}
}

// Editors offer what is in properties: each field once, in its canonical spelling.
func TestSchemaListsEachFieldOnce(t *testing.T) {
	v := newValidator(t)
	schemas := []any{any(v.root)}
	for _, schema := range v.root["$defs"].(object) {
		schemas = append(schemas, schema)
	}
	for _, schema := range schemas {
		for name := range schema.(object)["properties"].(object) {
			if strings.Contains(name, "_") {
				t.Errorf("%s is offered", name)
			}
		}
	}
	if faults := v.check(free(t, "{name: a, failure_policy: halt, x-anchors: {b: 1}, tasks: {b: {type: approval, depends_on: []}}}")); len(faults) > 0 {
		t.Errorf("snake_case is refused: %v", faults)
	}
	if faults := v.check(free(t, "{name: a, failure_policy: stop, tasks: {b: {type: approval}}}")); len(faults) == 0 {
		t.Error("snake_case is not checked")
	}
}

func TestSchemaRefuses(t *testing.T) {
	v := newValidator(t)
	task := func(fields string) string { return "{name: a, tasks: {b: {" + fields + "}}}" }
	for _, document := range []string{
		"{name: a}", "{name: _a, tasks: {b: {type: approval}}}", "{name: a, tasks: {}}", "[]",
		"{name: a, tasks: {'b c': {type: approval}}}",
		task(""), task("type: shel"), task("type: shell"), task("type: shell, spec: {cmd: x}"), task("type: shell, spec: {command: []}"),
		task("type: shell, spec: {command: ''}"),
		task("type: shell, spec: {command: x}, priority: 11"), task("type: shell, spec: {command: x}, priority: high"), task("type: shell, spec: {command: x}, retry: {backoffMs: -1}"),
		task("type: shell, spec: {command: x}, dependsOn: [], depends_on: []"), task("type: shell, spec: {command: x}, needs: []"), task("type: shell, spec: {command: x}, timeout: soon"),
		task("type: shell, spec: {command: x}, env: {1A: x}"), task("type: shell, spec: {command: x}, constraints: {targetNode: 'a:b'}"), task("type: container, spec: {command: x}"),
		task("type: claude_relay, spec: {prompt: x}"),
	} {
		if faults := v.check(free(t, document)); len(faults) == 0 {
			t.Errorf("%s is accepted", document)
		}
		if _, err := Parse("a.yaml", []byte(document)); err == nil {
			t.Errorf("Parse accepts %s", document)
		}
	}
}

func free(t *testing.T, document string) any {
	t.Helper()
	var value any
	if err := yaml.Unmarshal([]byte(document), &value); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	value = nil
	if err := json.Unmarshal(data, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// validator implements the keywords that Schema uses, and fails on any other.
type validator struct {
	t    *testing.T
	root object
}

func newValidator(t *testing.T) *validator {
	v := &validator{t: t}
	if err := json.Unmarshal(Schema(), &v.root); err != nil {
		t.Fatal(err)
	}
	return v
}

func (v *validator) check(value any) []string { return v.apply(v.root, value, "") }

func (v *validator) apply(schema object, value any, at string) (faults []string) {
	v.t.Helper()
	fault := func(keyword string) { faults = append(faults, at+": "+keyword) }
	fields, isObject := value.(object)
	items, isArray := value.([]any)
	text, isText := value.(string)
	number, isNumber := value.(float64)
	for keyword, argument := range schema {
		switch keyword {
		case "$schema", "title", "description", "$defs", "then":
		case "$ref":
			faults = append(faults, v.apply(v.resolve(argument.(string)), value, at)...)
		case "type":
			kinds, many := argument.([]any)
			if !many {
				kinds = []any{argument}
			}
			if !hasKind(kinds, value) {
				fault(fmt.Sprintf("type %v", kinds))
			}
		case "properties":
			for name, below := range argument.(object) {
				if there, ok := fields[name]; ok {
					faults = append(faults, v.apply(below.(object), there, at+"."+name)...)
				}
			}
		case "patternProperties":
			for pattern, below := range argument.(object) {
				for name, there := range fields {
					if regexp.MustCompile(pattern).MatchString(name) {
						faults = append(faults, v.apply(below.(object), there, at+"."+name)...)
					}
				}
			}
		case "additionalProperties":
			known, _ := schema["properties"].(object)
			patterns, _ := schema["patternProperties"].(object)
			for name, there := range fields {
				matches := func(pattern string) bool { return regexp.MustCompile(pattern).MatchString(name) }
				if _, ok := known[name]; ok || slices.ContainsFunc(slices.Collect(maps.Keys(patterns)), matches) {
					continue
				}
				if below, ok := argument.(object); ok {
					faults = append(faults, v.apply(below, there, at+"."+name)...)
				} else {
					fault("additional " + name)
				}
			}
		case "propertyNames":
			for name := range fields {
				faults = append(faults, v.apply(argument.(object), name, at+"."+name)...)
			}
		case "required":
			for _, name := range argument.([]any) {
				if _, ok := fields[name.(string)]; isObject && !ok {
					fault("required " + name.(string))
				}
			}
		case "items":
			for i, item := range items {
				faults = append(faults, v.apply(argument.(object), item, fmt.Sprint(at, "[", i, "]"))...)
			}
		case "allOf":
			for _, below := range argument.([]any) {
				faults = append(faults, v.apply(below.(object), value, at)...)
			}
		case "anyOf":
			good := false
			for _, below := range argument.([]any) {
				good = good || len(v.apply(below.(object), value, at)) == 0
			}
			if !good {
				fault(keyword)
			}
		case "not":
			if len(v.apply(argument.(object), value, at)) == 0 {
				fault(keyword)
			}
		case "if":
			if len(v.apply(argument.(object), value, at)) == 0 {
				faults = append(faults, v.apply(schema["then"].(object), value, at)...)
			}
		case "const":
			if !reflect.DeepEqual(argument, value) {
				fault(keyword)
			}
		case "enum":
			good := false
			for _, one := range argument.([]any) {
				good = good || reflect.DeepEqual(one, value)
			}
			if !good {
				fault(keyword)
			}
		case "pattern":
			if isText && !regexp.MustCompile(argument.(string)).MatchString(text) {
				fault(keyword)
			}
		case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "minimum", "maximum":
			bound := argument.(float64)
			size, applies := map[string]float64{
				"Length": float64(utf8.RuneCountInString(text)), "Items": float64(len(items)), "Properties": float64(len(fields)), "imum": number,
			}[keyword[3:]], map[string]bool{"Length": isText, "Items": isArray, "Properties": isObject, "imum": isNumber}[keyword[3:]]
			if applies && (keyword[:3] == "min" && size < bound || keyword[:3] == "max" && size > bound) {
				fault(keyword)
			}
		default:
			v.t.Fatalf("%s: unknown keyword %s", at, keyword)
		}
	}
	return faults
}

func hasKind(kinds []any, value any) bool {
	for _, kind := range kinds {
		good := false
		switch value := value.(type) {
		case object:
			good = kind == "object"
		case []any:
			good = kind == "array"
		case string:
			good = kind == "string"
		case bool:
			good = kind == "boolean"
		case float64:
			good = kind == "number" || kind == "integer" && value == math.Trunc(value)
		}
		if good {
			return true
		}
	}
	return false
}

func (v *validator) resolve(pointer string) object {
	schema := v.root
	for step := range strings.SplitSeq(strings.TrimPrefix(strings.TrimPrefix(pointer, "#"), "/"), "/") {
		if step == "" {
			continue
		}
		below, ok := schema[step].(object)
		if !ok {
			v.t.Fatalf("%s leads nowhere", pointer)
		}
		schema = below
	}
	return schema
}
