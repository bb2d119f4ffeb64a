package openapi_test

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"switchyard/gateway/openapi"
	v1 "switchyard/proto/switchyard/v1"
)

// parse returns the decoded document.
func parse(t *testing.T) map[string]any {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(openapi.Document()))
	if err != nil {
		t.Fatal(err)
	}
	return value.(map[string]any)
}

// TestDocumentIsOpenAPI validates the document against the schema that the OpenAPI Initiative publishes for version 3.1, and
// compiles each of its schemas as JSON Schema.
func TestDocumentIsOpenAPI(t *testing.T) {
	t.Parallel()
	file, err := os.Open("testdata/oas31-schema.json")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rules, err := jsonschema.UnmarshalJSON(file)
	if err != nil {
		t.Fatal(err)
	}
	document := parse(t)
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	for url, resource := range map[string]any{"https://switchyard/openapi-3.1.json": rules, "https://switchyard/document.json": document} {
		if err := compiler.AddResource(url, resource); err != nil {
			t.Fatal(err)
		}
	}
	version31, err := compiler.Compile("https://switchyard/openapi-3.1.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := version31.Validate(document); err != nil {
		t.Errorf("the document is not OpenAPI 3.1: %v", err)
	}
	broken := maps.Clone(document)
	broken["paths"] = map[string]any{"v1/runs": map[string]any{}}
	if version31.Validate(broken) == nil {
		t.Error("a path without a slash passes")
	}
	var visit func(at string, value any)
	visit = func(at string, value any) {
		switch value := value.(type) {
		case map[string]any:
			for key, below := range value {
				place := at + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
				if key == "schema" {
					if _, err := compiler.Compile("https://switchyard/document.json#" + strings.NewReplacer("{", "%7B", "}", "%7D").Replace(place)); err != nil {
						t.Errorf("%s: %v", place, err)
					}
				}
				visit(place, below)
			}
		case []any:
			for i, below := range value {
				visit(fmt.Sprintf("%s/%d", at, i), below)
			}
		}
	}
	visit("", map[string]any{"paths": document["paths"], "components": document["components"]})
}

// TestDocumentHasThePathsOfProto checks that the paths are exactly those of the annotations in proto and that of artifacts.
func TestDocumentHasThePathsOfProto(t *testing.T) {
	t.Parallel()
	want := []string{"GET /v1/runs/{id}/tasks/{task}/artifacts/{name}"}
	for _, service := range v1.Services() {
		for i := range service.Methods().Len() {
			for _, route := range v1.RoutesOf(service.Methods().Get(i)) {
				want = append(want, route.Method+" "+route.Path)
			}
		}
	}
	var got []string
	ids := map[string]string{}
	for path, item := range parse(t)["paths"].(map[string]any) {
		for method, operation := range item.(map[string]any) {
			endpoint := strings.ToUpper(method) + " " + path
			got = append(got, endpoint)
			id := operation.(map[string]any)["operationId"].(string)
			if other, taken := ids[id]; taken {
				t.Errorf("%s and %s have the operation id %s", other, endpoint, id)
			}
			ids[id] = endpoint
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if len(want) < 30 || !slices.Equal(got, want) {
		t.Errorf("the document has\n%s\nproto has\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestEveryOperationDocumentsItsErrors checks that each operation lists its possible errors, and that every error response has
// the schema Error.
func TestEveryOperationDocumentsItsErrors(t *testing.T) {
	t.Parallel()
	document := parse(t)
	for path, item := range document["paths"].(map[string]any) {
		for method, operation := range item.(map[string]any) {
			responses := operation.(map[string]any)["responses"].(map[string]any)
			want := []string{"400", "429", "503", "default"}
			if strings.Contains(path, "{") {
				want = append(want, "404")
			}
			if method != "get" && !strings.HasSuffix(path, ":plan") {
				want = append(want, "409")
			}
			for _, status := range want {
				if _, ok := responses[status]; !ok {
					t.Errorf("%s %s lacks %s", method, path, status)
				}
			}
		}
	}
	for name, response := range document["components"].(map[string]any)["responses"].(map[string]any) {
		content := response.(map[string]any)["content"].(map[string]any)["application/json"].(map[string]any)
		if ref := content["schema"].(map[string]any)["$ref"]; ref != "#/components/schemas/Error" {
			t.Errorf("response %s has the schema %v", name, ref)
		}
	}
}

// TestOneofsAllowTheirFields checks that a message with a oneof accepts each of its fields, but not two of them together.
func TestOneofsAllowTheirFields(t *testing.T) {
	t.Parallel()
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("https://switchyard/document.json", parse(t)); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("https://switchyard/document.json#/components/schemas/SubmitRunRequest")
	if err != nil {
		t.Fatal(err)
	}
	for body, fits := range map[string]bool{
		`{"workflow": "nightly", "input": {"day": [1, null]}}`:                                    true,
		`{"document": "name: a", "file": "a.yaml"}`:                                               true,
		`{"definition": {"name": "a", "tasks": {"b": {"type": "shell"}}}}`:                        true,
		`{"workflow": "nightly", "options": {"placementTimeout": "90s"}, "idempotencyKey": "k1"}`: true,
		`{"workflow": "nightly", "document": "name: a"}`:                                          false,
		`{"input": {}}`: false,
		`{"workflow": "nightly", "wrokflow": "x"}`: false,
		`{"workflow": 3}`:                          false,
	} {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); (err == nil) != fits {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// TestHandlerAnswersMatchingETagsWith304 checks that the document is served with an ETag that saves repeated downloads.
func TestHandlerAnswersMatchingETagsWith304(t *testing.T) {
	t.Parallel()
	get := func(method, etag string) *httptest.ResponseRecorder {
		request := httptest.NewRequest(method, openapi.Path, nil)
		if etag != "" {
			request.Header.Set("If-None-Match", etag)
		}
		response := httptest.NewRecorder()
		openapi.Handler().ServeHTTP(response, request)
		return response
	}
	whole := get(http.MethodGet, "")
	etag := whole.Header().Get("ETag")
	if whole.Code != http.StatusOK || !bytes.Equal(whole.Body.Bytes(), openapi.Document()) || etag == "" {
		t.Fatalf("GET: %d, %d bytes, ETag %q", whole.Code, whole.Body.Len(), etag)
	}
	if kind := whole.Header().Get("Content-Type"); kind != "application/json" {
		t.Errorf("the content type is %q", kind)
	}
	if again := get(http.MethodGet, etag); again.Code != http.StatusNotModified || again.Body.Len() != 0 {
		t.Errorf("GET with the ETag: %d, %d bytes", again.Code, again.Body.Len())
	}
	if other := get(http.MethodGet, `"other"`); other.Code != http.StatusOK {
		t.Errorf("GET with another ETag: %d", other.Code)
	}
	if head := get(http.MethodHead, ""); head.Code != http.StatusOK || head.Body.Len() != 0 {
		t.Errorf("HEAD: %d, %d bytes", head.Code, head.Body.Len())
	}
}
