package sse

import "testing"

func FuzzLogCursor(f *testing.F) {
	f.Add("end")
	f.Add("3~W3sidCI6ImJ1aWxkIiwiYyI6MX1d")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseLogCursor(text)
		if err != nil || c.ended || text == "" {
			return
		}
		if again, err := parseLogCursor(c.text()); c.text() != "" && (err != nil || len(again.at) != len(c.at)) {
			t.Errorf("%q became %q, %v", text, c.text(), err)
		}
	})
}

func FuzzAllID(f *testing.F) {
	f.Add("0123456789ab-7-1767225600000")
	f.Fuzz(func(t *testing.T, text string) {
		if id, err := parseAllID(text); err == nil && id.text() != text {
			t.Errorf("%q became %q", text, id.text())
		}
	})
}
