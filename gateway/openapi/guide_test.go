package openapi_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"switchyard/gateway/openapi/openapitest"
)

// guide is the human-readable guide to the REST paths.
const guide = "../../docs/rest.md"

// TestGuideHasEveryPath checks that the guide lists each operation of the document exactly once. dev/generate.sh writes that
// list.
func TestGuideHasEveryPath(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	document, err := openapitest.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, operation := range document.Operations() {
		row := fmt.Sprintf("\n| %s | `%s` | ", operation.Method, operation.Path)
		if n := strings.Count(string(text), row); n != 1 {
			t.Errorf("%s has %d rows of %s %s; run dev/generate.sh", guide, n, operation.Method, operation.Path)
		}
	}
}

// TestGuideNamesPathsThatExist checks that every path of this gateway that the guide names elsewhere is in the document.
func TestGuideNamesPathsThatExist(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	document, err := openapitest.Load()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	variable := regexp.MustCompile(`\{[^}]*\}`)
	for _, operation := range document.Operations() {
		known[operation.Method+" "+variable.ReplaceAllString(operation.Path, "{}")] = true
	}
	_, equivalents, found := strings.Cut(string(text), "\n## Paths of other systems\n")
	if !found {
		t.Fatal("the guide has no section \"Paths of other systems\"")
	}
	named := 0
	for line := range strings.Lines(equivalents) {
		columns := strings.Split(line, " | ")
		if len(columns) < 2 {
			continue
		}
		for _, found := range regexp.MustCompile("`(GET|POST|PUT|PATCH|DELETE) (/[^`?]*)").FindAllStringSubmatch(columns[1], -1) {
			named++
			if !known[found[1]+" "+variable.ReplaceAllString(found[2], "{}")] {
				t.Errorf("the guide names %s %s, which the document lacks", found[1], found[2])
			}
		}
	}
	if named < 20 {
		t.Errorf("the guide names only %d paths of ours", named)
	}
}
