package a2a

import (
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
)

// textInput is the input of a run that receives the text of a message.
const textInput = "text"

// content is the merged content of the parts of a message.
type content struct {
	data    map[string]any // merged from all data parts, or nil if there is none
	text    string         // of all text parts, joined by line breaks
	hasText bool
}

// contentOf merges the parts of a message. It refuses files and data that is not an object.
func contentOf(m *a2a.Message) (content, error) {
	var c content
	var texts []string
	for i, part := range m.Parts {
		if part == nil {
			return c, errorf(a2a.ErrInvalidParams, "part %d of the message is empty", i)
		}
		switch value := part.Content.(type) {
		case a2a.Text:
			texts = append(texts, string(value))
		case a2a.Data:
			object, ok := value.Value.(map[string]any)
			if !ok {
				return c, errorf(a2a.ErrInvalidParams, "the data of message part %d must be an object with the inputs by name", i)
			}
			for name, field := range object {
				if _, twice := c.data[name]; twice {
					return c, errorf(a2a.ErrInvalidParams, "two parts of the message have data named %q", name)
				}
				if c.data == nil {
					c.data = map[string]any{}
				}
				c.data[name] = field
			}
			if c.data == nil {
				c.data = map[string]any{}
			}
		default:
			return c, errorf(a2a.ErrUnsupportedContentType, "message part %d is a file, but this agent accepts only text and data; pass the URL of the file as an input", i)
		}
	}
	c.text, c.hasText = strings.Join(texts, "\n"), len(texts) > 0
	return c, nil
}

// inputOf returns the run input that a message describes: its data, plus its text as the input `text`. Text beside data is
// ignored as a remark if the workflow declares inputs but none named `text`.
func inputOf(m *a2a.Message, def *v1.Definition) (*structpb.Struct, error) {
	c, err := contentOf(m)
	if err != nil {
		return nil, err
	}
	input := c.data
	if c.hasText {
		declared := len(def.GetInputs()) == 0 || def.GetInputs()[textInput] != nil
		_, given := input[textInput]
		switch {
		case declared && given:
			return nil, errorf(a2a.ErrInvalidParams, "both the text and the data of the message set the input `%s`; remove one of them", textInput)
		case declared:
			if input == nil {
				input = map[string]any{}
			}
			input[textInput] = c.text
		case input == nil:
			return nil, errorf(a2a.ErrInvalidParams, "skill %s does not accept text; send a data part with its inputs: %s", def.GetName(), listNames(inputNames(def)))
		}
	}
	fields, err := structpb.NewStruct(input)
	if err != nil {
		return nil, errorf(a2a.ErrInvalidParams, "the data of the message: %v", err)
	}
	return fields, nil
}
