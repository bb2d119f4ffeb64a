package gateway

import (
	"testing"
	"time"
)

func FuzzTokens(f *testing.F) {
	f.Add("")
	f.Add(encodeTaskToken("run-1", "task"))
	f.Add(encodeRunToken(position{start: time.Unix(1, 2).UTC(), runID: "x"}))
	f.Fuzz(func(t *testing.T, token string) {
		if task, err := decodeTaskToken(token, "run-1"); err == nil && token != "" {
			if again, err := decodeTaskToken(encodeTaskToken("run-1", task), "run-1"); err != nil || again != task {
				t.Errorf("%q became %q, %v", task, again, err)
			}
		}
		if p, err := decodeRunToken(token); err == nil && token != "" {
			if again, err := decodeRunToken(encodeRunToken(*p)); err != nil || !again.start.Equal(p.start) || again.runID != p.runID {
				t.Errorf("%v became %v, %v", p, again, err)
			}
		}
	})
}
