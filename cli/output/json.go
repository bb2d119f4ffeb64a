package output

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// WriteJSON writes a value as one indented JSON document.
func WriteJSON(w io.Writer, value any) error {
	return encode(w, value, "  ")
}

// WriteLine writes a value as one line of JSON.
func WriteLine(w io.Writer, value any) error { return encode(w, value, "") }

func encode(w io.Writer, value any, indent string) error {
	e := json.NewEncoder(w)
	e.SetIndent("", indent)
	e.SetEscapeHTML(false)
	return e.Encode(value)
}

// jsonText returns a value as one line of JSON without the newline.
func jsonText(value any) (string, error) {
	var text strings.Builder
	err := WriteLine(&text, value)
	return strings.TrimSuffix(text.String(), "\n"), err
}

// Timestamp returns a time in the JSON format, or "" if t is nil.
func Timestamp(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	return t.AsTime().Format(time.RFC3339Nano)
}

// WriteMessage writes a message as one indented JSON document, including zero values.
func WriteMessage(w io.Writer, m proto.Message) error {
	text, err := CompactJSON(m)
	if err != nil {
		return err
	}
	return WriteJSON(w, json.RawMessage(text))
}

// CompactJSON returns a message as JSON, including zero values. It removes the random spaces that protojson adds
// between tokens to keep readers from depending on its output.
func CompactJSON(m proto.Message) ([]byte, error) {
	text, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(m)
	if err != nil {
		return nil, err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		return nil, err
	}
	return compact.Bytes(), nil
}
