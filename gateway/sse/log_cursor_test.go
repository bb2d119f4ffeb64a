package sse

import (
	"fmt"
	"testing"

	v1 "switchyard/proto/switchyard/v1"
)

// TestCursorOfManyLogsHasNoText checks that a stream of very many logs has ids only as long as they are short. It resumes after the
// last of them.
func TestCursorOfManyLogsHasNoText(t *testing.T) {
	t.Parallel()
	c, last, logs := &logCursor{}, "", 0
	for k := range 400 {
		c.begin(&v1.LogPosition{Task: fmt.Sprintf("task-with-a-long-name-%d", k), Claim: 1, Next: 1})
		c.advance()
		text := c.text()
		if len(text) > 7<<10 {
			t.Fatalf("an id of %d bytes", len(text))
		}
		if text != "" {
			last, logs = text, k+1
		}
		c.finish()
	}
	again, err := parseLogCursor(last)
	if err != nil || logs < 50 || logs > 390 || len(again.positions()) != logs {
		t.Errorf("the last id is that of log %d, %v", logs, err)
	}
}

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
