package output

import (
	"encoding/json"

	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/drawing/words"
)

// maxShortText is the most characters of a value that are shown.
const maxShortText = 60

// ShortText returns a value on one line, cut if it is long: a string unchanged, anything else as JSON.
func ShortText(v *structpb.Value) string {
	text := v.GetStringValue()
	if _, ok := v.GetKind().(*structpb.Value_StringValue); !ok {
		// Every value of this type has a JSON form.
		whole, _ := json.Marshal(v.AsInterface())
		text = string(whole)
	}
	letters := []rune(words.OneLine(text))
	if len(letters) > maxShortText {
		return string(letters[:maxShortText]) + "…"
	}
	return string(letters)
}
