package taskrunner

import (
	"slices"
	"testing"

	historyv1 "switchyard/proto/switchyard/history/v1"
)

func TestGPUsOfAnAttempt(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		has   map[int32]string
		given []int32
		want  []string
	}{
		"given":                      {has: map[int32]string{1: "1", 101: "MIG-a"}, given: []int32{1, 101}, want: []string{"1", "MIG-a"}},
		"given, though none is seen": {given: []int32{1}, want: []string{"1"}},
		"none":                       {has: map[int32]string{1: "1"}, want: []string{}},
		"a node without":             {},
	} {
		n := &Node{GPUs: func() map[int32]string { return test.has }}
		got := n.grantedGPUs(&historyv1.ExecuteRequest{Gpus: test.given})
		if !slices.Equal(got, test.want) || (got == nil) != (test.want == nil) {
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
