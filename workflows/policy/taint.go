package policy

import (
	"slices"
	"strings"

	v1 "switchyard/proto/switchyard/v1"
)

// A node is kept for GPUTaint, which are tasks that ask for a GPU, and for labels, each after labelPrefix.
const (
	GPUTaint    = "gpu"
	labelPrefix = "label="
)

// LabelTaint returns what a node is kept for that is reserved for a label.
func LabelTaint(label string) string { return labelPrefix + label }

// labelOf returns the label that a node is kept for, or "".
func labelOf(taint string) string {
	label, isLabel := strings.CutPrefix(taint, labelPrefix)
	if !isLabel {
		return ""
	}
	return label
}

// TolerationOf returns the word of `tolerates` with which a task may run on a node that is kept for this.
func TolerationOf(taint string) string {
	if label := labelOf(taint); label != "" {
		return label
	}
	return taint
}

// ReservedLabels returns the labels that a node is kept for.
func ReservedLabels(keptFor []string) []string {
	var labels []string
	for _, taint := range keptFor {
		if label := labelOf(taint); label != "" {
			labels = append(labels, label)
		}
	}
	return labels
}

// KeptFrom returns what a node is kept for that a task neither asks for nor tolerates. An item completes "is kept for".
func KeptFrom(keptFor []string, c *v1.Constraints, hasGPUs bool) []string {
	var from []string
	for _, taint := range keptFor {
		word, label := TolerationOf(taint), labelOf(taint)
		isAsked := taint == GPUTaint && hasGPUs ||
			label != "" && (slices.Contains(c.GetNodeLabels(), label) || slices.Contains(c.GetAnyLabels(), label))
		switch {
		case isAsked || slices.Contains(c.GetTolerates(), word):
		case taint == GPUTaint:
			from = append(from, "tasks that ask for a GPU or tolerate "+word)
		default:
			from = append(from, "tasks that ask for label "+word+" or tolerate "+word)
		}
	}
	return from
}

// IsLabel reports whether a node can be reserved for a label.
func IsLabel(label string) bool {
	return label != "" && !strings.ContainsAny(label, "=, \t\n")
}
