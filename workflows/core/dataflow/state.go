package dataflow

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/command"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/core/fanout"
	"switchyard/workflows/core/flight"
)

// These are the most bytes that an attempt may return in its result.
const (
	maxInlineResult = 24 << 10
	maxInlineTotal  = 16 << 20 // by all tasks of a run together
)

// State knows what tasks and expressions see. It has the stored copies of what many requests carry, and the expressions that are
// to be evaluated. A State is not safe for concurrent use.
type State struct {
	flight.Config
	graph    *dag.Graph
	core     *dag.State
	records  *flight.Records
	flight   *flight.State
	fanOuts  *fanout.State
	commands *command.State
	Trigger  string // what has started the generation

	context, input shared
	version        int64             // of the newest stored object
	ancestors      map[int]ancestors // by task

	questions   []Question
	openRetries int // failed attempts whose retry.when is not evaluated yet
}

// New returns the state of a run. The commands have the facts of the run.
func New(c flight.Config, graph *dag.Graph, commands *command.State) *State {
	return &State{
		Config: c, graph: graph, core: commands.Core, records: commands.Records, flight: commands.Flight, fanOuts: commands.FanOuts,
		commands: commands, ancestors: map[int]ancestors{},
	}
}

// InlineLimit returns the most bytes of streams and output that the answer to a request may hold. Anything larger goes through the
// store.
func (s *State) InlineLimit() int32 { return int32(min(maxInlineResult, maxInlineTotal/s.core.Len())) }

// cacheScope returns the owner of the cached results that the run reads and writes. Each user has a separate scope: otherwise
// anyone who may submit a definition could read the results of other users' tasks, or replace them.
func (s *State) cacheScope() string {
	role := v1.ParseRole(s.Input.GetByRole())
	if s.Input.GetPartition() != nil || role == v1.Role_ROLE_UNSPECIFIED || role.Includes(v1.Role_ROLE_OPERATOR) {
		return s.Input.GetCacheScope()
	}
	return s.commands.SubmittedBy
}

// CachedResult returns the request that stores the result of a task for later runs.
func (s *State) CachedResult(end flight.End, now time.Time) *historyv1.SaveCachedRequest {
	i, at := end.Ended.Task, end.Response.GetCompletedAt()
	if at == nil {
		at = timestamppb.New(now)
	}
	return &historyv1.SaveCachedRequest{
		Workflow: s.Input.GetDefinition().GetName(),
		Task:     s.graph.Name(s.core.TaskOf(i)),
		Key:      s.records.Of(i).CacheKey,
		Scope:    s.cacheScope(),
		Result:   &historyv1.CachedResult{RunId: s.RunID, CompletedAt: at, Response: end.Response},
	}
}
