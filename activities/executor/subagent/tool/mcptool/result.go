package mcptool

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"switchyard/activities/executor/subagent/tool"
)

// maxOutcome bounds the text of an outcome, in bytes.
const maxOutcome = 64 << 10

// outcomeOf returns the result of a call as the model reads it.
func outcomeOf(result *sdk.CallToolResult) tool.Outcome {
	var parts []string
	for _, content := range result.Content {
		if part := textOf(content); part != "" {
			parts = append(parts, part)
		}
	}
	if structured := structuredText(result); structured != "" {
		parts = append(parts, structured)
	}
	text := cut(clean(strings.Join(parts, "\n")), maxOutcome)
	if text == "" {
		text = "(no content)"
	}
	return tool.Outcome{Text: text, IsError: result.IsError}
}

// textOf returns the text of a part of a result, or a note on what is left out.
func textOf(content sdk.Content) string {
	switch content := content.(type) {
	case *sdk.TextContent:
		return content.Text
	case *sdk.ImageContent:
		return fmt.Sprintf("[an image of type %s with %d bytes is left out]", content.MIMEType, len(content.Data))
	case *sdk.AudioContent:
		return fmt.Sprintf("[a sound of type %s with %d bytes is left out]", content.MIMEType, len(content.Data))
	case *sdk.ResourceLink:
		return fmt.Sprintf("[the resource %s is left out]", content.URI)
	case *sdk.EmbeddedResource:
		switch r := content.Resource; {
		case r == nil:
			return ""
		case r.Text != "":
			return fmt.Sprintf("[the resource %s]\n%s", r.URI, r.Text)
		default:
			return fmt.Sprintf("[the resource %s with %d bytes is left out]", r.URI, len(r.Blob))
		}
	}
	return "[content of an unknown type is left out]"
}

// structuredText returns the structured content of a result as JSON, or "" if there is none or a text part repeats it.
func structuredText(result *sdk.CallToolResult) string {
	if result.StructuredContent == nil {
		return ""
	}
	data, err := json.Marshal(result.StructuredContent)
	if err != nil {
		return ""
	}
	var structured any
	if json.Unmarshal(data, &structured) != nil {
		return ""
	}
	for _, content := range result.Content {
		text, ok := content.(*sdk.TextContent)
		var same any
		if ok && json.Unmarshal([]byte(text.Text), &same) == nil && reflect.DeepEqual(same, structured) {
			return ""
		}
	}
	return string(data)
}

// clean returns text without bytes that JSON or a provider rejects.
func clean(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// cut returns the beginning of a text, and a note on how much was left out.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const room = 64 // for the note
	kept := strings.ToValidUTF8(text[:limit-room], "")
	return fmt.Sprintf("%s\n[%d bytes are left out]", kept, len(text)-len(kept))
}
