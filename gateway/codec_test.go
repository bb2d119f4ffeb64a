package gateway

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// TestUnknownJSONFieldIsRefusedByName checks that an unknown field is rejected by name rather than dropped.
func TestUnknownJSONFieldIsRefusedByName(t *testing.T) {
	t.Parallel()
	f := start(t)
	enveloped := func(body string) string {
		return string(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body)))) + body
	}
	for name, test := range map[string]struct{ procedure, contentType, body, code, field string }{
		"definition": {
			switchyardv1connect.RunServiceSubmitRunProcedure, "application/json",
			`{"definition":{"name":"m","tasks":{"a":{"type":"shell","timout":"1s","condishun":"false","spec":{"command":"true"}}}}}`, "invalid_argument", "timout",
		},
		"request": {
			switchyardv1connect.RunServiceSubmitRunProcedure, "application/json; charset=utf-8",
			`{"definition":{"name":"m","tasks":{"a":{"type":"shell","spec":{"command":"true"}}}},"inptu":{}}`, "invalid_argument", "inptu",
		},
		"stream": {
			switchyardv1connect.RunServiceStreamRunLogsProcedure, "application/connect+json",
			enveloped(`{"id":"last","folow":true}`), "invalid_argument", "folow",
		},
		"grpc-web": {
			switchyardv1connect.RunServiceGetRunProcedure, "application/grpc-web+json",
			enveloped(`{"id":"last","pagesize":2}`), "Grpc-Status:[3]", "pagesize",
		},
	} {
		t.Run(name, func(t *testing.T) {
			res, err := http.Post(f.server.URL()+test.procedure, test.contentType, strings.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{test.code, "unknown field", test.field} {
				// gRPC-Web returns errors in the headers.
				if said := fmt.Sprint(string(body), res.Header); !strings.Contains(said, want) {
					t.Errorf("%q is not in the answer %d %s", want, res.StatusCode, said)
				}
			}
		})
	}
}
