package definition

import (
	"os"
	"regexp"
	"strings"
	"testing"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/condition"
)

// The guide names every function of expressions and every constraint.
func TestGuideNamesEverything(t *testing.T) {
	data, err := os.ReadFile("../../docs/language.md")
	if err != nil {
		t.Fatal(err)
	}
	guide := string(data)
	functions, methods, err := condition.Functions()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(functions, methods...) {
		if !regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\(`).MatchString(guide) {
			t.Errorf("the guide does not name the function %s", name)
		}
	}
	fields := (&v1.Constraints{}).ProtoReflect().Descriptor()
	for _, name := range fieldNames(fields) {
		if !strings.Contains(guide, "`"+name+"`") {
			t.Errorf("the guide does not name the constraint %s", name)
		}
	}
}
