package a2a

import (
	"context"
	"maps"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"github.com/a2aproject/a2a-go/v2/a2a"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/nearest"
)

// skillKey is the metadata key of a message or request that names the target skill.
const skillKey = "skillId"

// skills returns the stored workflows that are offered to agents, ordered by name.
func (a *agent) skills(ctx context.Context) ([]*v1.StoredWorkflow, error) {
	var all []*v1.StoredWorkflow
	for req := (&v1.ListWorkflowsRequest{PageSize: 1000}); ; {
		res, err := a.Workflows.ListWorkflows(ctx, connect.NewRequest(req))
		if err != nil {
			return nil, err
		}
		for _, stored := range res.Msg.GetItems() {
			if stored.GetA2A() {
				all = append(all, stored)
			}
		}
		if req.PageToken = res.Msg.GetNextPageToken(); req.PageToken == "" {
			return all, nil
		}
	}
}

// skillOf returns the definition of the skill that a message targets: the one named in its metadata, or the only one.
func (a *agent) skillOf(ctx context.Context, req *a2a.SendMessageRequest) (*v1.Definition, error) {
	name, err := skillName(req)
	if err != nil {
		return nil, err
	}
	if name != "" {
		res, err := a.Workflows.GetWorkflow(ctx, connect.NewRequest(&v1.GetWorkflowRequest{Name: name}))
		if code := connect.CodeOf(err); err != nil && code != connect.CodeNotFound && code != connect.CodeInvalidArgument {
			return nil, err
		}
		if err == nil && res.Msg.GetDefinition().GetA2A() {
			return res.Msg.GetDefinition(), nil
		}
	}
	all, err := a.skills(ctx)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(all))
	for _, stored := range all {
		names = append(names, stored.GetName())
	}
	switch {
	case len(all) == 0:
		return nil, errorf(a2a.ErrUnsupportedOperation, "this agent has no skills; store a workflow with `a2a: true` to add one")
	case name != "":
		hint := nearest.DidYouMean(name, names)
		if hint == "" {
			hint = "there are " + listNames(names)
		}
		return nil, errorf(a2a.ErrInvalidParams, "there is no skill %q; %s", name, hint)
	case len(all) > 1:
		return nil, errorf(a2a.ErrInvalidParams, "this agent has %d skills; name one as `%s` in the metadata of the message: %s", len(all), skillKey, listNames(names))
	}
	res, err := a.Workflows.GetWorkflow(ctx, connect.NewRequest(&v1.GetWorkflowRequest{Name: names[0]}))
	if err != nil {
		return nil, err
	}
	return res.Msg.GetDefinition(), nil
}

// skillName returns the skill named in the metadata of a request or its message, or "" if neither names one.
func skillName(req *a2a.SendMessageRequest) (string, error) {
	var found string
	for _, metadata := range []map[string]any{req.Metadata, req.Message.Metadata} {
		value, ok := metadata[skillKey]
		if !ok {
			continue
		}
		name, ok := value.(string)
		if !ok || name == "" {
			return "", errorf(a2a.ErrInvalidParams, "`%s` in the metadata must be a string: the `id` of a skill in the agent card", skillKey)
		}
		found = name
	}
	return found, nil
}

// maxNamed bounds the number of names that an error lists.
const maxNamed = 20

// listNames joins names for an error text, at most maxNamed of them.
func listNames(names []string) string {
	if len(names) > maxNamed {
		return strings.Join(names[:maxNamed], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}

// inputNames returns the sorted names of the inputs of a workflow.
func inputNames(def *v1.Definition) []string { return slices.Sorted(maps.Keys(def.GetInputs())) }
