package rpcerror

import (
	"regexp"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
)

// placeText matches the position that protojson puts before an error.
var placeText = regexp.MustCompile(`^(?:syntax error )?\(line (\d+):(\d+)\): `)

// Malformed returns the text of an error about a JSON body that cannot be decoded as m: the place, the fault and, for an unknown
// field, what was probably meant.
func Malformed(data []byte, m proto.Message, err error) string {
	place, text := "the body", Readable(err.Error())
	if at := placeText.FindStringSubmatch(text); at != nil {
		place, text = "line "+at[1]+", column "+at[2]+" of the body", text[len(at[0]):]
	}
	if quoted, ok := strings.CutPrefix(text, "unknown field "); ok {
		name, _ := strconv.Unquote(quoted)
		if hint := unknownFieldHint(name, data, m.ProtoReflect().Descriptor()); hint != "" {
			text += "; " + hint
		}
	}
	return place + ": " + text
}

// Readable returns a message without the prefix and the non-breaking spaces that the proto library adds to its errors.
func Readable(text string) string {
	text = strings.ReplaceAll(strings.TrimSpace(text), "\u00a0", " ")
	return strings.ReplaceAll(text, "proto: ", "")
}
