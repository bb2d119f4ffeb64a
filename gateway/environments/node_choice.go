package environments

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/nearest"
)

// maxReasons bounds how many nodes an error lists with their reasons.
const maxReasons = 5

// need describes what a node must offer to create an environment.
type need struct {
	of         string // source of the environment, for errors
	executor   string // task type that the node must run
	capability string // required capability; empty means none
	lacks      string // describes a node that does not meet the need, such as "runs no containers"
}

func containerNeed(image string) need {
	return need{of: "image " + image, executor: v1.TypeContainer, lacks: "runs no containers"}
}

func machineNeed(image string) need {
	return need{of: "the image " + image + " of a virtual machine", executor: v1.TypeVPS, capability: v1.QEMUCapability, lacks: "runs no virtual machines"}
}

// refusal returns why a node cannot create an environment, or "" if it can.
func (want need) refusal(n *v1.Node) string {
	switch {
	case n.GetState() != v1.NodeActive && n.GetReason() != "":
		return "is " + n.GetState() + " (" + n.GetReason() + ")"
	case n.GetState() != v1.NodeActive:
		return "is " + n.GetState()
	case !slices.Contains(n.GetExecutors(), want.executor):
		if why := n.GetSnapshot().GetWithheld()[want.executor]; why != "" {
			return want.lacks + " (" + why + ")"
		}
		return want.lacks
	case want.capability != "" && n.GetCapabilities()[want.capability] != "true":
		return want.lacks
	}
	return ""
}

// chooseNode returns the named node, or the node with the most free disk if name is empty. It returns an error if no such
// node meets the need.
func (s Service) chooseNode(ctx context.Context, name string, want need) (string, error) {
	all, err := s.Nodes.List(ctx)
	if err != nil {
		return "", fmt.Errorf("list nodes: %w", err)
	}
	slices.SortFunc(all, func(a, b *v1.Node) int { return strings.Compare(a.GetName(), b.GetName()) })
	if name != "" {
		return findNode(all, name, want)
	}
	var best *v1.Node
	var reasons []string
	for _, n := range all {
		if why := want.refusal(n); why != "" {
			reasons = append(reasons, n.GetName()+" "+why)
		} else if best == nil || n.GetDiskGb().GetFree() > best.GetDiskGb().GetFree() {
			best = n
		}
	}
	switch {
	case best != nil:
		return best.GetName(), nil
	case len(all) == 0:
		return "", rpcerror.WrongState("no node can create an environment from %s: there are no nodes; start one with `switchyard worker`", want.of)
	case len(reasons) > maxReasons:
		reasons = append(reasons[:maxReasons], fmt.Sprintf("%d other nodes cannot either", len(all)-maxReasons))
	}
	return "", rpcerror.WrongState("no node can create an environment from %s: %s", want.of, strings.Join(reasons, "; "))
}

// findNode returns the named node if it meets the need.
func findNode(all []*v1.Node, name string, want need) (string, error) {
	var known []string
	for _, n := range all {
		if known = append(known, n.GetName()); n.GetName() != name {
			continue
		}
		if why := want.refusal(n); why != "" {
			return "", rpcerror.WrongState("node %s cannot create an environment from %s: it %s; choose another node, or leave node out", name, want.of, why)
		}
		return name, nil
	}
	return "", rpcerror.Missing("node", name, nearest.DidYouMean(name, known))
}
