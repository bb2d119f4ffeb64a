package taskrunner

import (
	"testing"

	historyv1 "switchyard/proto/switchyard/history/v1"
)

func TestGPUsOfAnAttempt(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		has   bool
		given []int32
		want  []int32
	}{
		"given":                      {has: true, given: []int32{1, 3}, want: []int32{1, 3}},
		"given, though none is seen": {given: []int32{1}, want: []int32{1}},
		"none":                       {has: true, want: []int32{}},
		"a node without":             {},
	} {
		n := &Node{HasGPUs: func() bool { return test.has }}
		got := grantedGPUs(&historyv1.ExecuteRequest{Gpus: test.given}, n.HasGPUs)
		if len(got) != len(test.want) || (got == nil) != (test.want == nil) {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}

// TestAttemptIsBoundWhereThereAreSeveralNUMANodes checks that an attempt on the only NUMA node of a machine is not bound.
func TestAttemptIsBoundWhereThereAreSeveralNUMANodes(t *testing.T) {
	t.Parallel()
	zero := int32(0)
	for _, has := range []bool{false, true} {
		n := &Node{HasNUMA: func() bool { return has }}
		if bound := n.boundTo(&historyv1.ExecuteRequest{NumaNode: &zero}); (bound != nil) != has {
			t.Errorf("several NUMA nodes %t: bound to %v", has, bound)
		}
	}
}
