package taskrunner

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor"
	"switchyard/activities/executor/fake"
	"switchyard/activities/store/storekey"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// TestApprovalCoversEnvironmentsOfTheSubmit starts containers of an approved run after an environment was made anew.
func TestApprovalCoversEnvironmentsOfTheSubmit(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.Executors = map[string]executor.Executor{v1.TypeContainer: fake.New(v1.TypeContainer, nil)}
	if err := b.Store.PutMessage(t.Context(), storekey.EnvironmentName("tools"), &v1.Environment{Name: "tools", Digest: "new"}); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		environment string
		approved    map[string]string // nil means that the run needed no approval
		says        string            // "" if the container starts
	}{
		"no approval":      {environment: "tools"},
		"none":             {approved: map[string]string{}},
		"the same":         {environment: "tools", approved: map[string]string{"tools": "new"}},
		"made anew":        {environment: "tools", approved: map[string]string{"tools": "old"}, says: "another version of environment tools"},
		"not named":        {environment: "tools", approved: map[string]string{"other": "new"}, says: "does not cover environment tools"},
		"no such any more": {environment: "gone", approved: map[string]string{"gone": "old"}},
	} {
		req := request(name)
		req.Type = v1.TypeContainer
		req.Spec = &structpb.Struct{Fields: map[string]*structpb.Value{"environment": structpb.NewStringValue(test.environment)}}
		if test.approved != nil {
			req.ApprovedEnvironments = &historyv1.ApprovedEnvironments{Digests: test.approved}
		}
		res := b.startAs(t.Context(), name, req).answer()
		isRefused := res.GetState() == v1.TaskFailed && res.GetReason() == v1.ReasonBadSpec && strings.Contains(res.GetError(), "`switchyard runs rerun r-1`")
		if isRefused != (test.says != "") || !strings.Contains(res.GetError(), test.says) || !isRefused && res.GetState() != v1.TaskCompleted {
			t.Errorf("%s: %v", name, res)
		}
	}
}
