package mcp

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestInvalidArgumentsAreNamed checks that argument errors tell the model what to correct.
func TestInvalidArgumentsAreNamed(t *testing.T) {
	for name, test := range map[string]struct {
		tool, arguments string
		want            []string // parts of the error text; empty if the arguments fit
	}{
		"nothing":               {"list_tasks", ``, nil},
		"null":                  {"list_tasks", `null`, nil},
		"all that fit":          {"list_tasks", `{"state":"running","pageSize":5}`, nil},
		"a list":                {"list_tasks", `[1]`, []string{"an array; send an object"}},
		"no JSON":               {"list_tasks", `{`, []string{"not valid JSON"}},
		"two values":            {"list_tasks", `{} {}`, []string{"after top-level value"}},
		"an unknown one":        {"list_tasks", `{"stat":"running"}`, []string{"stat is unknown", "did you mean state?"}},
		"another spelling":      {"list_tasks", `{"page_size":5}`, []string{"did you mean pageSize?"}},
		"nothing near":          {"undrain_node", `{"node":"a","colour":1}`, []string{"colour is unknown; known are node, preview"}},
		"a wrong type":          {"list_tasks", `{"state":5,"pageSize":"5"}`, []string{"state is a number; it must be a string", "pageSize is a string; it must be an integer"}},
		"a fraction":            {"list_tasks", `{"pageSize":1.5}`, []string{"it must be an integer"}},
		"a word that is none":   {"list_tasks", `{"state":"runing"}`, []string{"not one of pending", "did you mean running?"}},
		"a missing one":         {"explain_task", `{"task":"a"}`, []string{"run is missing: Run ID"}},
		"an empty one":          {"explain_task", `{"task":"a","run":""}`, []string{"run is missing"}},
		"one deep below":        {"submit_task", `{"type":"shell","spec":{},"constraints":{"nodeLabel":["a"]}}`, []string{"constraints.nodeLabel is unknown", "nodeLabels"}},
		"an item":               {"run_distributed", `{"command":"x","nodes":["a",1]}`, []string{"nodes[1] is a number"}},
		"a value of a map":      {"submit_task", `{"type":"shell","spec":{},"env":{"A":1}}`, []string{"env.A is a number"}},
		"a text or an object":   {"validate_definition", `{"definition":5}`, []string{"it must be a string or an object"}},
		"a time that is none":   {"list_workflows", `{"since":"yesterday"}`, []string{"since", "yesterday"}},
		"one that changes":      {"submit_task", `{"type":"shell","spec":{},"input":{"ids":[9007199254740993]}}`, []string{"input.ids[0]: 9007199254740993 cannot be kept exactly"}},
		"a number that is big":  {"list_tasks", `{"pageSize":1e30}`, []string{"pageSize is the number 1e30; it must be an integer"}},
		"a negative wait":       {"stream_task_output", `{"run":"a","waitSeconds":-1}`, []string{"waitSeconds is -1; it must be 0 or more: How long to wait for the end, in seconds, at most 50."}},
		"no wait":               {"stream_task_output", `{"run":"a","waitSeconds":0}`, nil},
		"a number with a point": {"list_tasks", `{"pageSize":5.0}`, []string{"pageSize is the number 5.0; it must be an integer"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(Config{})
			_, err := s.tools[test.tool].decode(json.RawMessage(test.arguments))
			if len(test.want) == 0 {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil {
				t.Fatal("there is no error")
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error lacks %q:\n%v", part, err)
				}
			}
		})
	}
}

func FuzzArguments(f *testing.F) {
	f.Add("submit_task", `{"type":"shell","spec":{"command":"x"}}`)
	f.Add("list_tasks", `{"pageSize":5}`)
	f.Add("run_distributed", `{"command":"x","nodes":["*"]}`)
	s := New(Config{})
	f.Fuzz(func(_ *testing.T, name, arguments string) {
		if t := s.tools[name]; t != nil {
			_, _ = t.decode(json.RawMessage(arguments))
		}
	})
}
