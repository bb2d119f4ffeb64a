package submission

import (
	"context"
	"fmt"
	"slices"

	"connectrpc.com/connect"

	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// checkQuota returns an error if the owner of a new run, or its group, has as many open runs as its quota allows. The count is
// that of visibility, which lags behind by seconds. A request whose key has started a run before is not refused.
func (s *Submitter) checkQuota(ctx context.Context, name, owner, key string) error {
	if s.Owners == nil || owner == "" {
		return nil
	}
	all, err := s.Owners.Recent(ctx)
	if err != nil {
		return err
	}
	for _, of := range all {
		limit, members := of.GetQuota().GetRuns(), membersOf(of)
		if limit == 0 || !slices.Contains(members, owner) {
			continue
		}
		open, err := s.Index.CountOpen(ctx, members)
		if err != nil {
			return err
		}
		if open >= limit && !s.hasStarted(ctx, name, owner, key) {
			return connect.NewError(connect.CodeAborted, fmt.Errorf(
				"%s has %d of the %d open runs that the quota allows; wait until one has ended, or let an admin raise it with `switchyard quotas set %s --runs N`", of.GetName(), open, limit, of.GetName()))
		}
	}
	return nil
}

// membersOf returns the owners to whom a quota applies together.
func membersOf(of *v1.Owner) []string {
	if members := of.GetShare().GetMembers(); len(members) > 0 {
		return members
	}
	return []string{of.GetName()}
}

// hasStarted reports whether the request with a key has started a run of a workflow.
func (s *Submitter) hasStarted(ctx context.Context, name, owner, key string) bool {
	if key == "" {
		return false
	}
	_, err := s.Client.DescribeWorkflowExecution(ctx, names.KeyedRunID(name, ScopedKey(owner, key)), "")
	return rpcerror.CodeOf(err) != connect.CodeNotFound
}
