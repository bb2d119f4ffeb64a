package edge

import (
	"strings"
	"testing"

	v1 "switchyard/proto/switchyard/v1"
)

func TestJSONThatWouldChangeIsRefused(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"workflow": "x", "input": {"id": 9007199254740993}}`:                      "SubmitRunRequest: the body: input.id: 9007199254740993 cannot be kept exactly",
		`{"definition": {"name": "x", "tasks": {"a": {"foreach": [1e15, 1e400]}}}}`: "SubmitRunRequest: the body: definition.tasks.a.foreach[1]: 1e400 is out of the range",
		`{"workflow": "x", "input": {"id": 1, "id": 2}}`:                            "input.id: duplicate key",
		`{"workflow": "x", "inputs": {}}`:                                           `SubmitRunRequest: line 1, column 19 of the body: unknown field "inputs"; did you mean input?`,
		`{"definition": {"tasks": {"a": {"timout": "1s", "condishun": ""}}}}`:       `unknown field "timout"; did you mean timeout?`,
		`{"workflow": 7}`: "line 1, column 14 of the body: invalid value for string",
		`{"workflow": "x", "input": {"id": "9007199254740993", "n": 9007199254740991}}`: "",
	} {
		err := strictJSON{"json"}.Unmarshal([]byte(body), &v1.SubmitRunRequest{})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
}
