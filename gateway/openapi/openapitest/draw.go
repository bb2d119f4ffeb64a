package openapitest

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// Request is a generated request.
type Request struct {
	Method string
	Target string // escaped path and query
	Header map[string]string
	Body   []byte // nil means no body
}

// Known holds values that exist in the gateway under test, by parameter name. Some drawn requests use them, so that the
// tests reach the code after the look-up.
type Known map[string][]string

// oddStrings are strings that programs tend to mishandle.
var oddStrings = []string{
	"", " ", "..", ".", "a/b", "%2F", "%00", "\x00", "a\x00b", "\n", "'; DROP TABLE runs; --", "x' OR 'a' = 'a", "${{ a }}",
	"{{", "*", "last", "-1", "0", "9999999999999999999", "1e400", "NaN", "null", "true", "[]", "{}", "ü€😀", "\u202e", "\xff\xfe",
	strings.Repeat("a", 300), strings.Repeat("é", 3000), "2026-02-30T25:00:00Z", "-5s", "9e99s", "../../etc/passwd", ":", "a:b", "~",
}

// documents are values for definition fields; the first one is valid.
var documents = []string{
	"name: drawn\ntasks:\n  b: { type: shell, spec: { command: 'true' } }\n",
	"name: a\ntasks: {}\n", "name: a\ntasks: [", "tasks:\n  b: {type: nope}\n", "- a\n- b\n", "&a [*a]", "a: &a [x]\nb: [*a, *a]\n",
	"name: a\ntasks:\n  b: { type: shell, dependsOn: [b], spec: { command: 'true' } }\n", "name: 1e999\ntasks: 3\n", "\t",
	"name: a\ntasks:\n  b: { type: shell, foreach: '${{', spec: { command: 3 } }\n", "!!binary x", "---\n---\n",
}

// temper is the rate of odd values in a request: one in temper values is odd. 0 means none.
type temper int

// tempers are the tempers to draw from. Half of all requests follow the document.
var tempers = []temper{0, 0, 12, 2}

// Draw generates a request for the operation: one that follows the document, one with few faults, or one with many.
func (o *Operation) Draw(t *rapid.T, known Known) Request {
	d := drawer{t: t, document: o.document, known: known, temper: rapid.SampledFrom(tempers).Draw(t, "temper")}
	r := Request{Method: o.Method, Header: map[string]string{}}
	path, query := o.Path, url.Values{}
	for _, parameter := range o.parameters() {
		name := parameter["name"].(string)
		schema, _ := parameter["schema"].(object)
		switch parameter["in"] {
		case "path":
			value := d.text(name)
			if value == "" {
				value = "-" // an empty segment would select another path
			}
			path = strings.Replace(path, "{"+name+"}", url.PathEscape(value), 1)
		case "query":
			if rapid.IntRange(0, 2).Draw(t, "has "+name) == 0 {
				query.Add(name, d.parameter(name, schema))
			}
			if d.isOdd("twice " + name) {
				query.Add(name, d.parameter(name, schema))
			}
		case "header":
			if rapid.Bool().Draw(t, "has "+name) {
				r.Header[name] = headerText(d.text(name))
			}
		}
	}
	if d.isOdd("unknown parameter") {
		query.Add(rapid.SampledFrom(oddStrings).Draw(t, "parameter"), "1")
	}
	r.Target = path
	if len(query) > 0 {
		r.Target += "?" + query.Encode()
	}
	schema := o.body()
	if schema == nil && !d.isOdd("body though there is none") {
		return r
	}
	r.Header["Content-Type"] = "application/json"
	if d.isOdd("content type") {
		r.Header["Content-Type"] = rapid.SampledFrom([]string{
			"application/json; charset=utf-8", "application/yaml", "text/plain", "", "/", "application/x-www-form-urlencoded", "multipart/form-data",
		}).Draw(t, "content type")
	}
	r.Body = d.body(schema)
	return r
}

// headerText removes the characters that HTTP clients never send in a header.
func headerText(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, text)
}

// drawer draws values that fit schemas.
type drawer struct {
	t        *rapid.T
	document *Document
	known    Known
	temper   temper
}

// isOdd draws whether a part of the request departs from the document.
func (d *drawer) isOdd(what string) bool {
	return d.temper > 0 && rapid.IntRange(1, int(d.temper)).Draw(d.t, "odd: "+what) == 1
}

// body draws the bytes of a body: JSON that fits the schema, or something else.
func (d *drawer) body(schema object) []byte {
	if d.isOdd("body") {
		if rapid.Bool().Draw(d.t, "JSON") {
			text, _ := json.Marshal(d.anything(3)) // cannot fail: anything draws JSON values only
			return text
		}
		return []byte(rapid.SampledFrom(slices.Concat(oddStrings, documents)).Draw(d.t, "body"))
	}
	text, _ := json.Marshal(d.value(schema, "body", 6))
	if d.isOdd("cut off") {
		text = text[:len(text)/2]
	}
	return text
}

// text draws the text of a parameter or field.
func (d *drawer) text(name string) string {
	switch known := d.known[name]; {
	case d.isOdd(name):
		if rapid.IntRange(0, 4).Draw(d.t, "any "+name) == 0 {
			return rapid.StringN(-1, 40, 200).Draw(d.t, name)
		}
		return rapid.SampledFrom(oddStrings).Draw(d.t, name)
	case len(known) > 0:
		return rapid.SampledFrom(known).Draw(d.t, name)
	}
	return rapid.StringMatching(`[a-z]{1,8}`).Draw(d.t, name)
}

// parameter draws the text of a query parameter.
func (d *drawer) parameter(name string, schema object) string {
	value := d.value(schema, name, 1)
	if text, ok := value.(string); ok {
		return text
	}
	text, _ := json.Marshal(value)
	return string(text)
}

// value draws a value that fits a schema, or occasionally one that does not.
func (d *drawer) value(schema object, name string, depth int) any {
	schema = d.document.resolve(schema)
	if depth == 0 || d.isOdd("value of "+name) {
		return d.anything(min(depth, 2))
	}
	if enum, ok := schema["enum"].([]any); ok {
		return rapid.SampledFrom(enum).Draw(d.t, name)
	}
	kind, _ := schema["type"].(string)
	if kinds, ok := schema["type"].([]any); ok {
		kind, _ = rapid.SampledFrom(kinds).Draw(d.t, "type of "+name).(string)
	}
	switch kind {
	case "object":
		return d.object(schema, name, depth)
	case "array":
		items, _ := schema["items"].(object)
		list := []any{}
		for range rapid.IntRange(0, 3).Draw(d.t, "items of "+name) {
			list = append(list, d.value(items, name, depth-1))
		}
		return list
	case "string":
		switch pattern, _ := schema["pattern"].(string); {
		case name == "document" && !d.isOdd("document"):
			return documents[0]
		case name == "document":
			return rapid.SampledFrom(documents).Draw(d.t, name)
		case pattern != "" && !d.isOdd("pattern of "+name):
			return rapid.StringMatching(pattern).Draw(d.t, name)
		case schema["format"] == "date-time" && !d.isOdd("time of "+name):
			return rapid.SampledFrom([]string{"2026-01-02T03:04:05Z", "2026-01-02T03:04:05.123456789+01:00"}).Draw(d.t, name)
		}
		return d.text(name)
	case "integer":
		if d.isOdd("number of " + name) {
			return rapid.SampledFrom([]any{-1, 1 << 31, -1 << 31, json.Number("9223372036854775808"), 1.5}).Draw(d.t, name)
		}
		return rapid.IntRange(0, 3).Draw(d.t, name)
	case "number":
		return rapid.SampledFrom([]any{0, 0.5, -1, 1e300}).Draw(d.t, name)
	case "boolean":
		return rapid.Bool().Draw(d.t, name)
	}
	return d.anything(2)
}

// object draws an object with some of its properties, and usually one alternative of a oneof.
func (d *drawer) object(schema object, name string, depth int) object {
	made := object{}
	properties, _ := schema["properties"].(object)
	excluded := map[string]bool{}
	if alternatives, ok := schema["oneOf"].([]any); ok && !d.isOdd("one of "+name) {
		chosen := rapid.IntRange(0, len(alternatives)-1).Draw(d.t, "alternative of "+name)
		for i, alternative := range alternatives {
			required, _ := alternative.(object)["required"].([]any)
			for _, field := range required {
				field, _ := field.(string)
				excluded[field] = true
				if i == chosen {
					made[field] = d.value(properties[field].(object), field, depth-1)
				}
			}
		}
	}
	needed, _ := schema["required"].([]any)
	for _, field := range slices.Sorted(maps.Keys(properties)) {
		isNeeded := slices.Contains(needed, any(field)) && !d.isOdd("lacks "+field)
		if !excluded[field] && (isNeeded || rapid.IntRange(0, 2).Draw(d.t, "has "+field) == 0) {
			made[field] = d.value(properties[field].(object), field, depth-1)
		}
	}
	if values, ok := schema["additionalProperties"].(object); ok {
		for range rapid.IntRange(0, 2).Draw(d.t, "entries of "+name) {
			made[d.key(name)] = d.value(values, name, depth-1)
		}
	} else if d.isOdd("unknown field of " + name) {
		made[rapid.SampledFrom(oddStrings).Draw(d.t, "field")] = 1
	}
	return made
}

// key draws the key of a map.
func (d *drawer) key(name string) string {
	if d.isOdd("key of " + name) {
		return rapid.SampledFrom(oddStrings).Draw(d.t, "key of "+name)
	}
	return rapid.StringMatching(`[a-z]{1,8}`).Draw(d.t, "key of "+name)
}

// anything draws any JSON value.
func (d *drawer) anything(depth int) any {
	kinds := 7
	if depth <= 0 {
		kinds = 5
	}
	switch rapid.IntRange(0, kinds).Draw(d.t, "kind of value") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(d.t, "bool")
	case 2:
		return rapid.SampledFrom([]any{0, -1, 1 << 40, 1.5, json.Number("1e400"), json.Number("99999999999999999999999")}).Draw(d.t, "number")
	case 3, 4, 5:
		return rapid.SampledFrom(oddStrings).Draw(d.t, "string")
	case 6:
		return []any{d.anything(depth - 1), d.anything(depth - 1)}
	default:
		return object{rapid.SampledFrom(oddStrings).Draw(d.t, "name"): d.anything(depth - 1)}
	}
}
