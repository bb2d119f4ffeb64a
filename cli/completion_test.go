package cli

import (
	"slices"
	"strings"
	"testing"

	"switchyard/cli/exit"
	v1 "switchyard/proto/switchyard/v1"
)

func TestCompletion(t *testing.T) {
	f := fake(t)
	nightly(f)
	script(f, &v1.ListRunsResponse{Items: []*v1.Run{{Id: "nightly-4g5h6jkm", State: "running"}}})
	script(f, &v1.ListNodesResponse{Items: []*v1.Node{{Name: "gpu-1", State: "active"}}})
	scriptSchedule(f, nightlySchedule())
	script(f, &v1.ListWorkflowsResponse{Items: []*v1.StoredWorkflow{{Name: "elt"}}})
	env := map[string]string{"SWITCHYARD_GATEWAY": f.url}
	runs, tasks := []string{"last", "nightly-4g5h6jkm\trunning"}, []string{"build\tdead_letter", "deploy\tskipped"}
	for _, test := range []struct {
		line string
		want []string
	}{
		{"runs get ", runs},
		{"runs logs nightly ", tasks},
		{"runs cancel ", runs},
		{"runs retry nightly --from ", tasks},
		{"runs events nightly --task ", tasks},
		{"runs get nightly build ", nil},
		{"runs exec ", runs},
		{"runs exec nightly ", tasks},
		{"runs port-forward nightly ", tasks},
		{"ssh nightly ", tasks},
		{"dlq retry ", runs},
		{"dlq list --run ", runs},
		{"dlq list --node ", []string{"gpu-1\tactive"}},
		{"nodes drain ", []string{"gpu-1\tactive"}},
		{"nodes list --state ", []string{"active", "stale", "draining", "restarting", "offline"}},
		{"runs instances nightly build --state ", v1.TaskStates()},
		{"workflows get ", []string{"elt"}},
		{"schedules pause ", []string{"nightly\tactive"}},
		{"schedules trigger nightly --overlap ", v1.Overlaps()},
		{"submit --workflow ", []string{"elt"}},
		{"runs list --workflow ", []string{"elt"}},
	} {
		var words []string
		for range 10 { // completion offers nothing if a busy machine does not answer at once
			got := runWith(t, env, "", append([]string{"__complete"}, strings.Split(test.line, " ")...)...)
			lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
			if words = lines[:len(lines)-1]; slices.Equal(words, test.want) {
				break
			}
		}
		if !slices.Equal(words, test.want) {
			t.Errorf("%q offers %q, want %q", test.line, words, test.want)
		}
	}
}

// TestCompletionWithoutAGatewayIsSilent checks that completion offers and prints nothing when no gateway answers.
func TestCompletionWithoutAGatewayIsSilent(t *testing.T) {
	got := runWith(t, map[string]string{"SWITCHYARD_GATEWAY": "127.0.0.1:1"}, "", "__complete", "runs", "get", "")
	if got.code != exit.CodeDone || got.stdout != ":36\n" && got.stdout != ":4\n" || strings.Contains(got.stderr, "127.0.0.1") {
		t.Errorf("%+v", got)
	}
}
