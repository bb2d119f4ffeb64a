package openapitest

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"switchyard/gateway/openapi"
)

// object is a JSON object.
type object = map[string]any

// root is the URL under which the validator knows the document.
const root = "https://switchyard/document.json"

// Document is the OpenAPI document of the gateway.
type Document struct {
	values   object
	compiler *jsonschema.Compiler
}

// Operation is one method of one path.
type Operation struct {
	Method string // such as GET
	Path   string // with variables in braces
	ID     string
	// Description is the description in the document, for people.
	Description string

	document *Document
	values   object
}

// Load reads the document that gateways serve.
func Load() (*Document, error) {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(openapi.Document()))
	if err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource(root, value); err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	return &Document{values: value.(object), compiler: compiler}, nil
}

// Operations returns all operations, ordered by path and method.
func (d *Document) Operations() []*Operation {
	var all []*Operation
	for path, item := range d.values["paths"].(object) {
		for method, values := range item.(object) {
			values := values.(object)
			all = append(all, &Operation{
				Method: strings.ToUpper(method), Path: path, ID: values["operationId"].(string),
				Description: text(values["description"]), document: d, values: values,
			})
		}
	}
	slices.SortFunc(all, func(a, b *Operation) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Method, b.Method))
	})
	return all
}

func text(value any) string {
	s, _ := value.(string)
	return s
}

// resolve follows references until it reaches a value that is not one.
func (d *Document) resolve(value any) object {
	found, _ := value.(object)
	for {
		ref, ok := found["$ref"].(string)
		if !ok {
			return found
		}
		var next any = d.values
		for step := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
			in, _ := next.(object)
			next = in[step]
		}
		found, _ = next.(object)
	}
}

// parameters returns the parameters of an operation.
func (o *Operation) parameters() []object {
	var all []object
	list, _ := o.values["parameters"].([]any)
	for _, parameter := range list {
		all = append(all, o.document.resolve(parameter))
	}
	return all
}

// HasParameter reports whether the operation has a parameter with this name.
func (o *Operation) HasParameter(name string) bool {
	return slices.ContainsFunc(o.parameters(), func(p object) bool { return p["name"] == name })
}

// body returns the schema of the JSON body, or nil if the operation takes no JSON.
func (o *Operation) body() object {
	body, _ := o.values["requestBody"].(object)
	content, _ := body["content"].(object)
	json, _ := content["application/json"].(object)
	schema, _ := json["schema"].(object)
	return schema
}

// Statuses returns the statuses that the document lists for the operation.
func (o *Operation) Statuses() []string {
	return slices.Sorted(maps.Keys(o.values["responses"].(object)))
}

// CheckAnswer returns an error if the document does not allow a response: an unlisted status, another content type, or a
// body that does not fit the schema.
func (o *Operation) CheckAnswer(status int, header http.Header, body []byte) error {
	responses := o.values["responses"].(object)
	key := fmt.Sprint(status)
	response, named := responses[key]
	if !named {
		if status < 400 {
			return fmt.Errorf("the document has no response with status %d, only %s", status, strings.Join(o.Statuses(), ", "))
		}
		response = responses["default"]
	}
	content, _ := o.document.resolve(response)["content"].(object)
	if content == nil && len(body) == 0 {
		return nil
	}
	kind, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		return fmt.Errorf("status %d has the content type %q: %w", status, header.Get("Content-Type"), err)
	}
	media, ok := content[kind].(object)
	if !ok {
		return fmt.Errorf("status %d has the content type %s, which the document lacks", status, kind)
	}
	if kind != "application/json" {
		return nil
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("status %d: the body is not JSON: %w", status, err)
	}
	schema, err := o.document.compile(media["schema"].(object))
	if err != nil {
		return err
	}
	if err := schema.Validate(value); err != nil {
		return fmt.Errorf("status %d: the body does not fit its schema: %w", status, err)
	}
	return nil
}

// compile returns the validator of a response schema, which must be a reference.
func (d *Document) compile(schema object) (*jsonschema.Schema, error) {
	ref, ok := schema["$ref"].(string)
	if !ok {
		return nil, fmt.Errorf("the response schema %v is not a reference", schema)
	}
	compiled, err := d.compiler.Compile(root + ref)
	if err != nil {
		return nil, fmt.Errorf("compile %s: %w", ref, err)
	}
	return compiled, nil
}
