package definition

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"pgregory.net/rapid"

	v1 "switchyard/proto/switchyard/v1"
)

func TestPrintedDefinitionsAreReadBackAsTheyWere(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../dev/examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("found %d examples, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		def, err := Parse(file, text)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Print(def)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Parse("again.yaml", again); err != nil || !proto.Equal(got, def) {
			t.Errorf("%s: %v\n%s", file, err, again)
		}
	}
}

func TestPrintedTextsAreReadBackAsTheyWere(t *testing.T) {
	t.Parallel()
	odd := rapid.SampledFrom([]string{
		"no", "1.10", "0x1f", "~", "null", "2024-01-01", "1:30", " x", "x ", "a: b", "a #b", "- a", "? a", "a\nb", "a\n b\n", "\ta\nb", " a\nb", "a \nb",
		"a\n\n", "a\n\nb\n", "\n", "a\r\nb", "\x1b[31m", "\u2028a\nb", "\ufeff", "%a", "@a", "`a`", "{a", "a: ", "a:\nb", "#!/bin/sh\nset -e\nexit 1\n", "|", "<<", "=", ".5", "1e3", "___", "y", "ON",
		"it's", "\"a\"", "\\", "${{ input.x }}", "---\na", "a\n---\nb\n", "...", "\u0085a\nb",
	})
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(odd, rapid.String()).Draw(t, "text")
		key := rapid.OneOf(odd, rapid.StringMatching(`[a-z]{1,5}`)).Draw(t, "key")
		if strings.ContainsAny(key, "\n\r") || strings.Contains(text, "${{") && !strings.Contains(text, "input") {
			t.Skip()
		}
		def := drawDefinition(t)
		def.Context = &structpb.Struct{Fields: map[string]*structpb.Value{key: structpb.NewStringValue(text)}}
		if _, err := Complete(def); err != nil {
			t.Skip(err)
		}
		printed, err := Print(def)
		if err != nil {
			t.Fatal(err)
		}
		compare(t, "again.yaml", printed, def)
	})
}

func TestPrintedTasksStandBehindTheirParents(t *testing.T) {
	t.Parallel()
	def := &v1.Definition{Name: "order", Description: "Shows the order.", Tasks: map[string]*v1.TaskDefinition{}}
	for name, parents := range map[string][]string{"a": {"z"}, "m": {"a", "z"}, "z": nil} {
		spec, _ := structpb.NewStruct(map[string]any{"command": "#!/bin/sh\necho " + name + "\n"})
		def.Tasks[name] = &v1.TaskDefinition{Type: "shell", Spec: spec, DependsOn: parents}
	}
	printed, err := Print(def)
	if err != nil {
		t.Fatal(err)
	}
	want := `name: order
description: Shows the order.
tasks:
  z:
    type: shell
    spec:
      command: |
        #!/bin/sh
        echo z
  a:
    type: shell
    dependsOn: [z]
    spec:
      command: |
        #!/bin/sh
        echo a
  m:
    type: shell
    dependsOn: [a, z]
    spec:
      command: |
        #!/bin/sh
        echo m
`
	if string(printed) != want {
		t.Errorf("got\n%s", printed)
	}
}
