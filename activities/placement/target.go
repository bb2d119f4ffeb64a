package placement

import (
	"fmt"
	"strconv"
	"strings"
)

// Target is a parsed target node.
type Target struct {
	// Node is the name of the node, or "" if the task is not pinned.
	Node string
	// NUMA is the NUMA node, or -1 for any.
	NUMA int
	// GPUs is the number of requested GPUs, or 0 for none.
	GPUs int
	// GPUIndices are the GPUs requested by index, or nil for any.
	GPUIndices []int
}

// mostIndex is the largest number allowed in a target.
const mostIndex = 1023

// ParseTarget parses "node", "node:NUMA", "node::GPUS" or "node:NUMA::GPUS". GPUS is a count such
// as 2, or a list of indices if it has a comma, such as 0,1. The empty string is a Target that pins
// nothing.
func ParseTarget(text string) (Target, error) {
	t := Target{NUMA: -1}
	rest, gpus, hasGPUs := strings.Cut(text, "::")
	name, numa, hasNUMA := strings.Cut(rest, ":")
	if text != "" && name == "" {
		return t, fmt.Errorf("target node %q has no node name", text)
	}
	t.Node = name
	if hasNUMA {
		n, err := parseIndex(numa)
		if err != nil {
			return t, fmt.Errorf("target node %q: NUMA node %w", text, err)
		}
		t.NUMA = n
	}
	if !hasGPUs {
		return t, nil
	}
	parts := strings.Split(gpus, ",")
	for _, part := range parts {
		n, err := parseIndex(part)
		if err != nil {
			return t, fmt.Errorf("target node %q: GPU %w", text, err)
		}
		t.GPUIndices = append(t.GPUIndices, n)
	}
	t.GPUs = len(parts)
	if len(parts) == 1 {
		t.GPUs, t.GPUIndices = t.GPUIndices[0], nil
	}
	return t, nil
}

func parseIndex(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || n > mostIndex {
		return 0, fmt.Errorf("%q is not a number from 0 to %d", s, mostIndex)
	}
	return int(n), nil
}
