package taskrunner

import (
	"bytes"
	"encoding/json"
	"time"

	"switchyard/activities/secrets/mask"
)

// maskEntry masks the values of secrets in a journal entry. In JSON it masks only string values: masking a field name, a
// number or a time because a secret is "text" or "2026" would make the attempt impossible to continue.
func maskEntry(masks *mask.Set, entry []byte) []byte {
	masked := masks.Bytes(entry)
	if bytes.Equal(masked, entry) || !json.Valid(entry) {
		return masked
	}
	masked = make([]byte, 0, len(entry))
	for len(entry) > 0 {
		begin := bytes.IndexByte(entry, '"')
		if begin < 0 {
			break
		}
		end := begin + 1
		for entry[end] != '"' {
			if entry[end] == '\\' {
				end++
			}
			end++
		}
		end++
		masked = append(masked, entry[:begin]...)
		token, rest := entry[begin:end], entry[end:]
		if !bytes.HasPrefix(bytes.TrimLeft(rest, " \t\r\n"), []byte(":")) {
			token = maskString(masks, token)
		}
		masked, entry = append(masked, token...), rest
	}
	return append(masked, entry...)
}

// maskString masks a JSON string, unless the string is a time.
func maskString(masks *mask.Set, token []byte) []byte {
	var text string
	if json.Unmarshal(token, &text) != nil {
		return token
	}
	if _, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return token
	}
	masked := masks.Text(text)
	if masked == text {
		return token
	}
	encoded, err := json.Marshal(masked)
	if err != nil {
		return []byte(`"` + mask.Replacement + `"`)
	}
	return encoded
}
