package words

import (
	"fmt"
	"strings"

	v1 "switchyard/proto/switchyard/v1"
)

// Workload returns what runs an attempt, such as "container 3f2a9c0d1e4b of alpine:3" or "process 4711", or "" if that is unknown.
func Workload(w *v1.Workload) string {
	var parts []string
	add := func(format string, value string) {
		if value != "" {
			parts = append(parts, fmt.Sprintf(format, OneLine(value)))
		}
	}
	add("machine %s,", w.GetMachine())
	if w.GetPid() != 0 {
		add("process %s", fmt.Sprint(w.GetPid()))
	}
	add("container %s", w.GetContainer())
	add("of %s", w.GetImage())
	if w.GetPod() != "" {
		add("pod %s of", w.GetPod())
	}
	add("Job %s", w.GetJob())
	add("in namespace %s", w.GetNamespace())
	add("of cluster %s", w.GetCluster())
	return strings.TrimSuffix(strings.Join(parts, " "), ",")
}
