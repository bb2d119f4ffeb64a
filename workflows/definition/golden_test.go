package definition

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files again")

// TestBadDocuments compares what a person is told about each bad document.
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
			checkGolden(t, file+".golden", err.Error()+"\n")
		})
	}
	if documents < 40 {
		t.Errorf("only %d documents", documents)
	}
}

func checkGolden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got), write it again with -update:\n%s", file, diff)
	}
}
