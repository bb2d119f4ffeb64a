package definition

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"switchyard/dev/golden"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
)

// TestBadDocuments compares the problems reported for each bad document with golden files.
func TestBadDocuments(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*")
	if err != nil {
		t.Fatal(err)
	}
	documents := 0
	for _, file := range files {
		if strings.HasSuffix(file, ".golden") {
			continue
		}
		documents++
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			def, err := Parse(filepath.Base(file), data)
			if err == nil {
				t.Fatalf("accepted as %v", def)
			}
			golden.Check(t, file+".golden", err.Error()+"\n")
		})
	}
	if documents < 40 {
		t.Errorf("only %d documents", documents)
	}
}

// TestWarnedDocuments compares the warnings about good documents with golden files, and checks that a message produces the same
// warnings.
func TestWarnedDocuments(t *testing.T) {
	files, err := filepath.Glob("testdata/warned/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("files %v, error %v", files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		checked, err := ParseChecked(filepath.Base(file), data)
		if err != nil {
			t.Fatal(err)
		}
		golden.Check(t, file+".golden", checked.Warnings.Error()+"\n")
		again, err := CompleteChecked(checked.Definition)
		if err != nil {
			t.Fatal(err)
		}
		without := func(p *v1.Problem) string { return p.GetPath() + ": " + p.GetMessage() + p.GetHint() }
		if diff := cmp.Diff(words(checked.Warnings, without), words(again.Warnings, without)); diff != "" {
			t.Errorf("a message has other warnings:\n%s", diff)
		}
	}
}

// TestTextsThatDoNotComeBackAreWarnedOf compares warnings that no message produces, because it has no texts of numbers.
func TestTextsThatDoNotComeBackAreWarnedOf(t *testing.T) {
	data, err := os.ReadFile("testdata/texts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	checked, err := ParseChecked("texts.yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "testdata/texts.yaml.golden", checked.Warnings.Error()+"\n")
	if again, err := CompleteChecked(checked.Definition); err != nil || len(again.Warnings) > 0 {
		t.Errorf("a message has the warnings %v, error %v", again.Warnings, err)
	}
}

func words(problems source.Problems, f func(*v1.Problem) string) (all []string) {
	for _, p := range problems {
		all = append(all, f(p))
	}
	slices.Sort(all)
	return all
}
