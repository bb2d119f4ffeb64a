//go:build engines

package e2e

import (
	"strings"
	"testing"
)

// TestDocumentsWithCurl runs the commands of the pages that show curl.
func TestDocumentsWithCurl(t *testing.T) {
	t.Parallel()
	tool(t, "curl")
	if ran := runDocuments(t, func(script string) bool { return strings.Contains(script, "curl ") }); ran < 10 {
		t.Errorf("the pages run only %d commands", ran)
	}
}
