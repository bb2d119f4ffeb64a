package orchestrator

import (
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/registry"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// SilentNodes returns which of some nodes are silent: offline, no longer registered, or without a heartbeat for so long that they
// would be offline. A node that cannot be looked up does not count.
func (c *Control) SilentNodes(ctx context.Context, req *historyv1.SilentNodesRequest) (*historyv1.SilentNodesResponse, error) {
	nodes, res := registry.New(c.Client), &historyv1.SilentNodesResponse{Since: map[string]*timestamppb.Timestamp{}}
	for _, name := range req.GetNodes() {
		entry, err := nodes.Entry(ctx, name)
		if since, isSilent := silentSince(entry, err, time.Now()); isSilent {
			res.Since[name] = timestamppb.New(since)
		}
	}
	return res, ctx.Err()
}

// silentSince returns since when a node has been silent, and reports whether it is silent. err is why the node has no entry, or nil.
func silentSince(e *registry.Entry, err error, now time.Time) (since time.Time, isSilent bool) {
	switch {
	case errors.Is(err, registry.ErrUnknown):
		return now, true
	case err != nil:
		return time.Time{}, false
	case e.Record.GetState() == v1.NodeOffline:
		return e.EndedAt(), true
	case e.Record.GetState() == v1.NodeRestarting:
		return time.Time{}, false
	}
	since = e.BeatAt
	if since.IsZero() {
		since = e.Record.GetRegisteredAt().AsTime()
	}
	return since, now.Sub(since) >= e.OfflineAfter()
}
