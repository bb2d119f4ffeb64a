package subagent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/workflows/structs"
)

// answerSchema is the schema that an answer must match, or nil if any text is an answer.
type answerSchema struct {
	text   string
	schema *jsonschema.Schema
}

// newAnswerSchema compiles a JSON schema. The schema cannot refer to external schemas.
func newAnswerSchema(s *structpb.Struct) (*answerSchema, error) {
	if s == nil {
		return nil, nil
	}
	text, err := protojson.Marshal(s)
	if err != nil {
		return nil, err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(noLoader{})
	const name = "outputSchema:/" // errors show the name, and a relative name would become a path on this machine
	if err := compiler.AddResource(name, value); err != nil {
		return nil, fmt.Errorf("outputSchema is not a valid JSON schema: %w", err)
	}
	schema, err := compiler.Compile(name)
	if err != nil {
		return nil, fmt.Errorf("outputSchema is not a valid JSON schema: %w", err)
	}
	return &answerSchema{text: string(text), schema: schema}, nil
}

// noLoader refuses to load external schemas.
type noLoader struct{}

// Load always returns an error.
func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("a schema cannot refer to %s", url)
}

// parse returns the answer in a text. The error is meant for the model.
func (a *answerSchema) parse(text string) (map[string]any, error) {
	text = unfence(text)
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		return nil, fmt.Errorf("not a single JSON object: %w", err)
	}
	if object == nil {
		return nil, errors.New("null instead of a JSON object")
	}
	if err := structs.CheckJSON([]byte(text)); err != nil {
		return nil, err
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	if err := a.schema.Validate(value); err != nil {
		return nil, err
	}
	return object, nil
}

// unfence returns the content of a fenced block if the text is one, else the text.
func unfence(text string) string {
	text = strings.TrimSpace(text)
	body, ok := strings.CutPrefix(text, "```")
	if !ok {
		return text
	}
	body, ok = strings.CutSuffix(body, "```")
	_, body, found := strings.Cut(body, "\n")
	if !ok || !found {
		return text
	}
	return strings.TrimSpace(body)
}
