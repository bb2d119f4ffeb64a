package words

import (
	"testing"

	v1 "switchyard/proto/switchyard/v1"
)

func TestWorkloadNamesWhatRuns(t *testing.T) {
	t.Parallel()
	for want, w := range map[string]*v1.Workload{
		"":                                      nil,
		"process 4711":                          {Pid: 4711},
		"machine desk, process 4711":            {Machine: "desk", Pid: 4711},
		"machine desk":                          {Machine: "desk"},
		"container 3f2a9c0d1e4b of alpine:3":    {Container: "3f2a9c0d1e4b", Image: "alpine:3"},
		"Job sy-a in namespace ci of cluster k": {Cluster: "k", Namespace: "ci", Job: "sy-a"},
		"pod sy-a-x of Job sy-a in namespace ci of cluster k": {Cluster: "k", Namespace: "ci", Job: "sy-a", Pod: "sy-a-x"},
	} {
		if got := Workload(w); got != want {
			t.Errorf("%v: %q, want %q", w, got, want)
		}
	}
}
