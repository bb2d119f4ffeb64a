package definition

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
)

func addSeeds(f *testing.F, wanted func(string) bool) {
	f.Helper()
	files, err := filepath.Glob("testdata/*/*")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		if !wanted(file) || strings.HasSuffix(file, ".golden") {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
}

// checkParse checks that any bytes lead to no panic, and either to problems that point into the document or to a definition
// that survives being written and read again.
func checkParse(t *testing.T, file string, data []byte) {
	def, err := Parse(file, data)
	if err != nil {
		problems, ok := errors.AsType[source.Problems](err)
		if !ok || len(problems) == 0 || err.Error() == "" {
			t.Fatalf("%T %v", err, err)
		}
		lines := int32(strings.Count(string(data), "\n") + strings.Count(string(data), "\r") +
			strings.Count(string(data), "\u0085") + strings.Count(string(data), "\u2028") + strings.Count(string(data), "\u2029") + 1)
		for _, p := range problems {
			if p.GetMessage() == "" || p.GetLine() > lines || !utf8.ValidString(p.String()) {
				t.Fatalf("odd problem %v of %d lines", p, lines)
			}
		}
		return
	}
	written, err := protojson.Marshal(def)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse("again.json", written)
	if err != nil {
		// Aliases make a document longer when it is written out.
		if len(written) > source.MaxBytes {
			return
		}
		t.Fatalf("its own JSON is refused: %v\n%s", err, written)
	}
	if !proto.Equal(def, again) {
		t.Fatalf("%v became %v", def, again)
	}
	if same, err := Complete(def); err != nil || !proto.Equal(same, def) {
		t.Fatalf("%v is completed to %v, %v", def, same, err)
	}
	if len(Order(def)) != v1.CountTasks(def) {
		t.Fatalf("order %v", Order(def))
	}
	if _, err := References(def); err != nil {
		t.Fatal(err)
	}
}

func FuzzYAML(f *testing.F) {
	addSeeds(f, func(file string) bool { return strings.HasSuffix(file, ".yaml") })
	f.Fuzz(func(t *testing.T, data []byte) { checkParse(t, "fuzz.yaml", data) })
}

func FuzzJSON(f *testing.F) {
	addSeeds(f, func(file string) bool { return strings.HasSuffix(file, ".json") })
	f.Fuzz(func(t *testing.T, data []byte) {
		checkParse(t, "fuzz.json", data)
		// The scanner is our own, so the standard one decides what valid JSON is.
		r := &source.Report{File: "fuzz.json"}
		tree := r.Read(data)
		plain := strings.TrimPrefix(string(data), "\ufeff")
		if valid := json.Valid([]byte(plain)); tree != nil && !valid {
			t.Fatal("not JSON, and accepted")
		} else if tree == nil && valid && len(r.Kept) == 0 {
			t.Fatal("JSON, and neither accepted nor refused")
		} else if tree == nil && valid && utf8.Valid(data) && strings.Contains(r.Kept[len(r.Kept)-1].GetMessage(), "not JSON") {
			t.Fatalf("JSON, and refused: %v", r.Kept)
		}
	})
}

// FuzzInput checks that whatever is given to a run is either refused or a valid input.
func FuzzInput(f *testing.F) {
	def := parse(f, "a.yaml", withInputs)
	for _, seed := range [][2]string{
		{"who: me\nratio: 1.5", "count=4"}, {`{"who": 1.10}`, "hosts=[a, {b: c}]"}, {"", "labels={x: 1}"}, {"- a", "fast=yes"}, {"a: &a [*a]", "note=[1"},
		{"who: !!binary x", "version=${{ x }}"}, {"who: null", "count=9007199254740993"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, document, pair string) {
		given, err := ParseInput(def, []string{pair, "who=me"}, []byte(document))
		if err == nil {
			given, err = Input(def, given)
		}
		if err != nil {
			if problems, ok := errors.AsType[source.Problems](err); !ok || len(problems) == 0 {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		if again, err := Input(def, given); err != nil || !proto.Equal(again, given) {
			t.Fatalf("%v became %v, %v", given, again, err)
		}
	})
}
