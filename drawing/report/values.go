package report

import (
	"bytes"
	"encoding/json"

	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/drawing/words"
)

// values formats an object as indented JSON, cut to maxValues, or returns "" if it is empty.
func values(object *structpb.Struct) string {
	if len(object.GetFields()) == 0 {
		return ""
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(object.AsMap()); err != nil {
		return err.Error()
	}
	return clip(words.Visible(text.String()), maxValues)
}
