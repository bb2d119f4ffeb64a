package mcp

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/nearest"
)

const (
	// everyNode stands for all nodes that accept tasks.
	everyNode = "*"
	// distributedRun is the name of the runs of run_distributed.
	distributedRun = "distributed"
	// maxNodes bounds the number of nodes in one run.
	maxNodes = 1000
)

// distributed returns the request for a run with one task per node, named after the node, and warnings about nodes that do not
// accept tasks.
func distributed(ctx context.Context, i *invocation) (req *v1.SubmitRunRequest, warnings []string, err error) {
	listed, err := i.Nodes.ListNodes(ctx, connect.NewRequest(&v1.ListNodesRequest{PageSize: maxNodes}))
	if err != nil {
		return nil, nil, err
	}
	nodes, warnings, err := chosenNodes(i.arguments.Nodes, listed.Msg.GetItems())
	if err != nil {
		return nil, nil, err
	}
	command, err := structpb.NewStruct(map[string]any{"command": i.arguments.Command})
	if err != nil {
		return nil, nil, usagef("command: %v", err)
	}
	def := &v1.Definition{Name: distributedRun, Tasks: map[string]*v1.TaskDefinition{}}
	for n, node := range nodes {
		name := taskNameOf(node)
		if v1.TaskNamed(def, name) != nil {
			name = fmt.Sprintf("%s-%d", name, n)
		}
		def.Tasks[name] = &v1.TaskDefinition{
			Type: v1.TypeShell, Spec: command, Timeout: i.arguments.Timeout,
			Constraints: &v1.Constraints{TargetNode: node},
			Retry:       &v1.RetryPolicy{MaxRetries: proto.Int32(0)},
		}
	}
	req = i.request.(*v1.SubmitRunRequest)
	req.Source = &v1.SubmitRunRequest_Definition{Definition: def}
	return req, warnings, nil
}

// chosenNodes returns the sorted, distinct names of the nodes that a caller selects.
func chosenNodes(asked []string, fleet []*v1.Node) (names, warnings []string, err error) {
	known := map[string]*v1.Node{}
	var all []string
	for _, node := range fleet {
		known[node.GetName()] = node
		all = append(all, node.GetName())
	}
	for _, name := range asked {
		switch {
		case name == everyNode:
			for _, node := range fleet {
				if node.GetState() == v1.NodeActive {
					names = append(names, node.GetName())
				}
			}
		case known[name] == nil:
			hint := "list_nodes lists the nodes"
			if near := nearest.DidYouMean(name, all); near != "" {
				hint = near
			}
			return nil, nil, usagef("There is no node %q; %s", name, hint)
		default:
			if state := known[name].GetState(); state != v1.NodeActive {
				warnings = append(warnings, fmt.Sprintf("%s is %s: its task waits until the node accepts tasks again", name, state))
			}
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) == 0 {
		return nil, nil, usagef("No node accepts tasks now; list_nodes shows their states.")
	}
	return names, warnings, nil
}

// taskNameOf converts the name of a node to a valid task name.
func taskNameOf(node string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r == '-' || r == '_') {
			return r
		}
		return '_'
	}, node)
}
