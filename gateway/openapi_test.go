package gateway

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"switchyard/gateway/openapi"
)

// TestGatewayServesItsDocument holds that a gateway has the document of its REST paths.
func TestGatewayServesItsDocument(t *testing.T) {
	t.Parallel()
	response, err := http.Get(start(t).server.URL() + openapi.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || !bytes.Equal(body, openapi.Document()) {
		t.Errorf("%s, %d bytes, %v", response.Status, len(body), err)
	}
}
