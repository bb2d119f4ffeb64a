package definition

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/dev/golden"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/nearest"
)

// TestReferenceOfTheLanguage checks that docs/language-reference.md is what the model says. The flag -update writes it.
func TestReferenceOfTheLanguage(t *testing.T) {
	golden.Check(t, "../../docs/language-reference.md", languageReference())
}

// languageReference returns the reference of the language, from the comments and rules of the model.
func languageReference() string {
	r := referenceWriter{schema: &schemaBuilder{comments: comments(), defs: object{}}}
	r.f("# Reference of the language\n\n")
	r.f("<!-- Written from the comments in proto/switchyard/v1 by dev/generate.sh. Do not edit. -->\n\n")
	r.f("This page lists every field of a definition, with its type and its limits. [The language](language.md) explains how they work\n")
	r.f("together, and `switchyard validate` checks all of it. `switchyard schema` prints the same as a JSON Schema, for editors.\n\n")
	r.f("A definition is YAML or JSON. Names of fields may also be written in snake_case. Fields of a workflow whose names begin with\n")
	r.f("`x-` are yours, such as for anchors. A text may be written as a number or a boolean, and a list of one text as the text.\n\n")
	r.f("| Type | Meaning |\n|---|---|\n")
	r.f("| duration | such as `90s`, `1h30m` or `2d` |\n")
	r.f("| expression | in the Common Expression Language; see [Functions of expressions](functions.md) |\n")
	r.f("| any value | whatever YAML can hold |\n")
	for _, file := range []protoreflect.FileDescriptor{v1.File_switchyard_v1_definition_proto, v1.File_switchyard_v1_spec_proto} {
		for i := range file.Messages().Len() {
			r.message(file.Messages().Get(i))
		}
	}
	return r.String()
}

type referenceWriter struct {
	strings.Builder
	schema *schemaBuilder
}

func (r *referenceWriter) f(format string, values ...any) { fmt.Fprintf(&r.Builder, format, values...) }

// referenceTitle returns the heading of a message.
func referenceTitle(m protoreflect.Name) string {
	for _, taskType := range v1.TaskTypes() {
		if newSpec(taskType).ProtoReflect().Descriptor().Name() == m {
			return "Spec of " + taskType
		}
	}
	switch m {
	case "Definition":
		return "Workflow"
	case "TaskDefaults":
		return "Defaults"
	case "SpecDefaults":
		return "Defaults of specs"
	case "RunConcurrency":
		return "Concurrency of runs"
	case "RetryPolicy":
		return "Retry policy"
	case "McpServer":
		return "MCP server"
	}
	return strings.TrimSuffix(string(m), "Definition")
}

// referenceLink returns a link to the section of a message.
func referenceLink(m protoreflect.Name) string {
	title := referenceTitle(m)
	return "[" + title + "](#" + referenceID(title) + ")"
}

// referenceID returns the anchor of a heading.
func referenceID(title string) string { return strings.ToLower(strings.ReplaceAll(title, " ", "-")) }

func (r *referenceWriter) message(m protoreflect.MessageDescriptor) {
	title := referenceTitle(m.Name())
	text := regexp.MustCompile(`^\w+ (?:is |holds |defines )?`).ReplaceAllString(r.schema.comments[m.FullName()], "")
	r.f("\n## %s\n\n%s%s\n\n", title, strings.ToUpper(text[:1]), r.linked(m, text[1:]))
	r.f("| Field | Type | Meaning |\n|---|---|---|\n")
	for i := range m.Fields().Len() {
		field := m.Fields().Get(i)
		if isDeprecated(field) {
			continue
		}
		comment := r.linked(m, r.schema.comments[field.FullName()])
		// A comment that only names another message is about the field of the same name there.
		comment = regexp.MustCompile(`^See \[.*\]\((.*)\)\.$`).ReplaceAllString(comment, "See [`"+field.JSONName()+"`]($1."+field.JSONName()+").")
		r.f("| <a id=\"%s.%s\"></a>`%s` | %s | %s |\n", referenceID(title), field.JSONName(), field.JSONName(), cell(r.typeOf(field)), cell(comment))
	}
	if m.Name() == "TaskDefinition" {
		r.types()
	}
}

// quotedValue matches a value in a comment.
var quotedValue = regexp.MustCompile(`"([^"]+)"`)

// linked returns a comment as Markdown: values are code, and the names of other messages are links.
func (r *referenceWriter) linked(m protoreflect.MessageDescriptor, text string) string {
	text = quotedValue.ReplaceAllString(text, "`$1`")
	return regexp.MustCompile(`\b[A-Z]\w+(?:Spec|Policy|Definition|Defaults)\b`).ReplaceAllStringFunc(text, func(name string) string {
		if protoreflect.Name(name) == m.Name() {
			return name
		}
		return referenceLink(protoreflect.Name(name))
	})
}

// types writes which fields of a task have an effect on which types of tasks.
func (r *referenceWriter) types() {
	r.f("\n### Fields and types of tasks\n\nMost fields are for tasks of every type. These are for some, and an error on others.\n\n| Field |")
	for _, taskType := range v1.TaskTypes() {
		r.f(" `%s` |", taskType)
	}
	r.f("\n|---|%s\n", strings.Repeat("---|", len(v1.TaskTypes())))
	for _, s := range fieldScopes {
		r.f("| `%s` |", s.field)
		for _, taskType := range v1.TaskTypes() {
			r.f(" %s |", effect(s, taskType))
		}
		r.f("\n")
	}
}

// effect returns whether a field has an effect on tasks of a type, in words.
func effect(s fieldScope, taskType string) string {
	for _, outer := range fieldScopes {
		if strings.HasPrefix(s.field, outer.field+".") && !outer.affects(&v1.TaskDefinition{Type: taskType}) {
			return "–"
		}
	}
	read := "${{ input.name }}"
	for _, c := range []struct {
		word string
		task *v1.TaskDefinition
	}{
		{"yes", &v1.TaskDefinition{}},
		{"with `sandbox`", &v1.TaskDefinition{Spec: &structpb.Struct{Fields: map[string]*structpb.Value{"sandbox": structpb.NewBoolValue(true)}}}},
		{"if `spec` reads it", &v1.TaskDefinition{Spec: &structpb.Struct{Fields: map[string]*structpb.Value{"message": structpb.NewStringValue(read), "workflow": structpb.NewStringValue(read)}}}},
		{"with a lock", &v1.TaskDefinition{Mutex: "lock"}},
	} {
		c.task.Type = taskType
		if s.affects(c.task) {
			return c.word
		}
	}
	return "–"
}

// typeOf returns the type and the limits of a field, in words.
func (r *referenceWriter) typeOf(field protoreflect.FieldDescriptor) string {
	text := r.inWords(field, r.schema.field(field))
	if needed(field) {
		text += ", required"
	}
	return text
}

func (r *referenceWriter) inWords(field protoreflect.FieldDescriptor, schema object) string {
	if target, ok := schema["$ref"].(string); ok {
		return referenceLink(protoreflect.Name(cmp.Or(strings.TrimPrefix(strings.TrimPrefix(target, "#"), "/$defs/"), "Definition")))
	}
	if words, ok := schema["enum"].([]string); ok {
		return nearest.Alternatives(strings.Split("`"+strings.Join(words, "` `")+"`", " "))
	}
	if value, ok := schema["const"]; ok {
		return fmt.Sprintf("`%v`", value)
	}
	if either, ok := schema["anyOf"].([]any); ok {
		var texts []string
		for _, one := range either {
			if text := r.inWords(field, one.(object)); text != "template" {
				texts = append(texts, text)
			}
		}
		if len(texts) > 1 && field.IsList() {
			return texts[0]
		}
		return strings.Join(texts, " or ")
	}
	limits := r.limits(schema)
	kind, _ := schema["type"].(string)
	if _, ok := schema["type"].([]any); ok {
		kind = "string"
	}
	switch kind {
	case "string":
		switch {
		case strings.HasPrefix(fmt.Sprint(schema["pattern"]), durationPattern):
			return "duration"
		case schema["pattern"] == `\$\{\{`:
			return "template"
		case field.Name() == "condition", field.Name() == "key" && field.Parent().Name() == "Cache", field.Name() == "when" && field.Parent().Name() == "RetryPolicy", field.Kind() == protoreflect.MessageKind && schema["minLength"] == 1 && schema["pattern"] == nil && !isText(schema):
			return "expression"
		}
		return "text" + limits
	case "array":
		items, _ := schema["items"].(object)
		if len(items) == 0 {
			return "list" + limits
		}
		return "list of " + plural(r.inWords(field, items)) + limits
	case "object":
		values, ok := schema["additionalProperties"].(object)
		switch {
		case !ok && field.IsMap(), !ok:
			return "object" + limits
		case field.Name() == "matrix":
			return "named lists"
		}
		return "map of names to " + plural(r.inWords(field, values)) + limits
	case "":
		return "any value"
	}
	return kind + limits
}

// isText reports whether a schema accepts numbers and booleans as texts, which no expression is.
func isText(schema object) bool {
	_, ok := schema["type"].([]any)
	return ok
}

func plural(text string) string {
	kind, limits, _ := strings.Cut(text, ",")
	if kind == "text" || kind == "object" || kind == "any value" {
		return strings.TrimSuffix(kind+"s,"+limits, ",")
	}
	return text
}

// limits returns the limits in a schema, each after a comma.
func (r *referenceWriter) limits(schema object) string {
	var texts []string
	limit := func(key, format string) {
		switch value := schema[key].(type) {
		case nil:
		case uint64, int, int64:
			if fmt.Sprint(value) != "1" || key == "maxItems" {
				texts = append(texts, fmt.Sprintf(format, value))
			} else {
				texts = append(texts, "not empty")
			}
		default:
			texts = append(texts, fmt.Sprintf(format, value))
		}
	}
	switch low, high := schema["minimum"], schema["maximum"]; {
	case low != nil && high != nil:
		texts = append(texts, fmt.Sprintf("%v to %v", low, high))
	case low != nil:
		texts = append(texts, fmt.Sprintf("%v or more", low))
	}
	limit("minLength", "at least %v characters")
	limit("maxLength", "at most %v characters")
	limit("minItems", "at least %v items")
	limit("maxItems", "at most %v items")
	limit("minProperties", "at least %v entries")
	limit("pattern", "matches `%v`")
	if names, ok := schema["propertyNames"].(object); ok {
		texts = append(texts, fmt.Sprintf("names match `%v`", names["pattern"]))
	}
	if texts = slices.Compact(texts); len(texts) == 0 {
		return ""
	}
	return ", " + strings.Join(texts, ", ")
}

// cell returns a text as a cell of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
