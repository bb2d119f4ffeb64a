//go:build engines

package e2e

import "testing"

// TestDocumentsWithTools runs the commands of the pages that need curl or openssl.
func TestDocumentsWithTools(t *testing.T) {
	t.Parallel()
	tool(t, "curl")
	tool(t, "openssl")
	if ran := runDocuments(t, needsTools); ran < 10 {
		t.Errorf("the pages run only %d commands", ran)
	}
}
