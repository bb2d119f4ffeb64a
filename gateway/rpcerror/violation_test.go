package rpcerror

import (
	"errors"
	"testing"

	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
)

func TestViolatedRulesNameTheValueAndWhatIsAllowed(t *testing.T) {
	for want, m := range map[string]proto.Message{
		`state is "fialed"; it must be pending, pending_approval, running, paused, completed, failed, cancelled or rejected; did you mean failed?`: &v1.ListRunsRequest{State: "fialed"},
		`trigger is "x\ny"; it must be submit, rerun, retry, child, schedule or manual`:                                                            &v1.ListRunsRequest{Trigger: "x\ny"},
		"pageSize is -1; it must be 0 to 1000":                    &v1.ListRunsRequest{PageSize: -1},
		"pageSize is 1001; it must be 0 to 1000":                  &v1.ListRunsRequest{PageSize: 1001},
		"share.weight is -1; it must be above 0 and at most 1000": &v1.SetOwnerRequest{Name: "ann", Share: &v1.Share{Weight: -1}},
		"id is missing": &v1.GetRunRequest{},
		`state is "onlin"; it must be active, stale, draining, restarting or offline; pageSize is -2; it must be 0 to 1000`: &v1.ListNodesRequest{State: "onlin", PageSize: -2},
	} {
		err := ExplainRules(protovalidate.Validate(m))
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		if _, ok := errors.AsType[*protovalidate.ValidationError](err); !ok {
			t.Errorf("%v does not hold the violations", err)
		}
	}
	if err := ExplainRules(protovalidate.Validate(&v1.ListRunsRequest{State: "failed"})); err != nil {
		t.Error(err)
	}
}
