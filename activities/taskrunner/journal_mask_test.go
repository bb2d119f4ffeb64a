package taskrunner

import (
	"encoding/json"
	"strings"
	"testing"

	"switchyard/activities/secrets/mask"
)

func TestMaskedEntriesKeepTheirForm(t *testing.T) {
	t.Parallel()
	const at = `"at":"2026-11-26T03:17:44.344363935Z"`
	for _, test := range []struct{ secret, entry, want string }{
		{"reply", `{"reply":{"text":"a reply"},` + at + `}`, `{"reply":{"text":"a ***"},` + at + `}`},
		{"2026", `{"text":"in 2026","tokens":2026,` + at + `}`, `{"text":"in ***","tokens":2026,` + at + `}`},
		{"003c", `{"text":"\u003c and 003c"}`, `{"text":"\u003c and ***"}`},
		{`a"b\c<d`, `{"text" : "it is a\"b\\c\u003cd","arguments":{"b":"a\"b\\c<d","a":1}}`, `{"text" : "it is ***","arguments":{"b":"***","a":1}}`},
		{"line one\nline two", `["line one\nline two\n","x"]`, `["***\n","x"]`},
		{"1234", `1234a`, `***a`},
		{"none of it", `{"text":"\u003c"}`, `{"text":"\u003c"}`},
	} {
		got := string(maskEntry(mask.New([]string{test.secret}), []byte(test.entry)))
		if json.Valid([]byte(got)) {
			got = strings.ReplaceAll(got, `<`, `\u003c`)
		}
		if got != test.want {
			t.Errorf("%q in %s:\n got %s\nwant %s", test.secret, test.entry, got, test.want)
		}
	}
	if got := maskEntry(nil, []byte("{}")); string(got) != "{}" {
		t.Errorf("without secrets: %s", got)
	}
}

func FuzzMaskEntry(f *testing.F) {
	f.Add("reply", `{"reply":{"text":"a reply \u003c \\\" "}}`)
	f.Fuzz(func(t *testing.T, secret, entry string) {
		got := maskEntry(mask.New([]string{secret}), []byte(entry))
		if json.Valid([]byte(entry)) && !json.Valid(got) {
			t.Errorf("%q in %s gives %s", secret, entry, got)
		}
	})
}
