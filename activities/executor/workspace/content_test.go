package workspace

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

func TestParseReadsJSONAndLines(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want map[string]any
	}{
		"empty":             {"", map[string]any{}},
		"blank":             {" \n\t\n", map[string]any{}},
		"comments":          {"# nothing\n\n  # more\n", map[string]any{}},
		"object":            {` {"a": 1, "b": {"c": [true, null, "x"]}} ` + "\n", map[string]any{"a": 1.0, "b": map[string]any{"c": []any{true, nil, "x"}}}},
		"empty object":      {"{}", map[string]any{}},
		"byte order mark":   {"\ufeff{\"a\": 1}", map[string]any{"a": 1.0}},
		"lines":             {"a=1\nb = two words \nc=\n", map[string]any{"a": "1", "b": " two words ", "c": ""}},
		"equals in a value": {"url=http://x/?a=b#c", map[string]any{"url": "http://x/?a=b#c"}},
		"carriage returns":  {"a=1\r\nb=2\r\n", map[string]any{"a": "1", "b": "2"}},
		"the last counts":   {"a=1\na=2\n", map[string]any{"a": "2"}},
		"JSON in a value":   {`files=["a"]`, map[string]any{"files": `["a"]`}},
		"heredoc":           {"a<<EOF\nfirst = line\n\n# third\nEOF\nb=2", map[string]any{"a": "first = line\n\n# third", "b": "2"}},
		"empty heredoc":     {"a<<EOF\nEOF\n", map[string]any{"a": ""}},
		"no heredoc":        {"a=b<<EOF\n", map[string]any{"a": "b<<EOF"}},
		"other scripts":     {"größe=größer\n", map[string]any{"größe": "größer"}},
	} {
		s, err := parse([]byte(test.text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(test.want, s.AsMap()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		line int
		want string
	}{
		"list":              {"\n[1, 2]", 2, "expected a JSON object"},
		"string":            {`"x"`, 1, "expected a JSON object"},
		"broken JSON":       {"{\n \"a\": 1,\n \"b\": oops\n}", 3, "invalid character"},
		"unfinished JSON":   {"{\"a\":\n1", 2, "is incomplete"},
		"two objects":       {"{}\n\n{}", 3, "more text"},
		"huge number":       {"{\"a\":\n1e999}", 2, "a: 1e999 is out of the range"},
		"large integer":     {"{\"a\":\n{\"ids\": [1,\n9007199254740993]}}", 3, "a.ids[1]: 9007199254740993 cannot be kept exactly"},
		"large decimal":     {"{\"a\": -9007199254740993.0}", 1, "a: -9007199254740993.0 cannot be kept exactly"},
		"key twice":         {"{\"a\": 1,\n\"a\": 2}", 2, "a: duplicate key"},
		"deep":              {"{\"a\":\n" + strings.Repeat("[", 200) + strings.Repeat("]", 200) + "}", 2, "nests more than"},
		"no pair":           {"a=1\nhello world\n", 2, `"hello world" is not key=value`},
		"no key":            {"=1", 1, "is not a valid key"},
		"space in key":      {"a b=1", 1, `"a b" is not a valid key`},
		"unfinished":        {"x=1\na<<EOF\nb\n", 2, `no line "EOF"`},
		"heredoc, no mark":  {"a<<\nb\n", 1, "terminates the value"},
		"not UTF-8":         {"a=1\nb=\xff\n", 2, "UTF-8"},
		"not UTF-8 in JSON": {"{\"a\": \"\xff\"}", 1, "UTF-8"},
		"long line":         {strings.Repeat("ü", 1000), 1, "..."},
	} {
		_, err := parse([]byte(test.text))
		content, ok := errors.AsType[*ContentError](err)
		if !ok || content.Line != test.line || !strings.Contains(content.Reason, test.want) || len(content.Reason) > 200 {
			t.Errorf("%s: error %v, want %q in line %d", name, err, test.want, test.line)
		}
	}
}

// Whatever parse accepts must survive everything that later happens to it.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"", "{}", `{"a": [1, {"b": null}]}`, "a=1\n# c\nb<<E\nx\nE\n", "[", "{", "\xff", "a<<", `{"a":1e400}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := parse(text)
		if err != nil {
			if _, ok := errors.AsType[*ContentError](err); !ok {
				t.Fatalf("error %T %v", err, err)
			}
			return
		}
		wire, err := proto.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := proto.Unmarshal(wire, &structpb.Struct{}); err != nil {
			t.Fatal(err)
		}
		if _, err := protojson.Marshal(s); err != nil {
			t.Fatal(err)
		}
		if _, err := json.Marshal(s.AsMap()); err != nil {
			t.Fatal(err)
		}
	})
}
