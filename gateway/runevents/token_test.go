package runevents

import (
	"switchyard/gateway/paging"
	"testing"
	"time"
)

func FuzzEventTokens(f *testing.F) {
	const l = paging.List("events")
	f.Add("")
	f.Add(encodeEvent(l, "run-1", eventPlace{Part: 1}))
	f.Add(encodeRunEvent(l, runPlace{run: "run-1", position: paging.Position{Start: time.Unix(1, 2).UTC(), RunID: "x"}, at: &eventPlace{Part: 1}}))
	f.Fuzz(func(t *testing.T, token string) {
		if p, err := decodeRunEvent(l, token); err == nil && token != "" {
			if again, err := decodeRunEvent(l, encodeRunEvent(l, *p)); err != nil || encodeRunEvent(l, *again) != encodeRunEvent(l, *p) {
				t.Errorf("%v became %v, %v", p, again, err)
			}
		}
	})
}
