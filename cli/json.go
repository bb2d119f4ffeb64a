package cli

import (
	"encoding/json"
	"io"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
)

// writeJSON writes a value as one indented document.
func writeJSON(w io.Writer, value any) error {
	return encode(w, value, "  ")
}

// writeLine writes a value as one line of JSON.
func writeLine(w io.Writer, value any) error { return encode(w, value, "") }

func encode(w io.Writer, value any, indent string) error {
	e := json.NewEncoder(w)
	e.SetIndent("", indent)
	e.SetEscapeHTML(false)
	return e.Encode(value)
}

// jsonText is a value as one line of JSON, without the newline.
func jsonText(value any) (string, error) {
	var text strings.Builder
	err := writeLine(&text, value)
	return strings.TrimSuffix(text.String(), "\n"), err
}

// timestamp is a time as JSON has it; "" where there is none.
func timestamp(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	return t.AsTime().Format(time.RFC3339Nano)
}
