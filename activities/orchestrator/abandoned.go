package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dataconverter"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// When a run is closed from outside, as by `cancel --force`, it abandons its attempts. Their nodes end them, which takes
// a moment; a node that is cut off ends them when their lease is over. The history of the closed execution names them, and
// Temporal still knows the heartbeat time-outs of their activities, to which their leases have grown.

// defaultHeartbeat is the heartbeat time-out of an attempt whose activity has none.
const defaultHeartbeat = 15 * time.Second

// maxAbandonedDepth bounds how many levels below a run its child runs are searched.
const maxAbandonedDepth = 32

// wasTerminated reports whether a workflow was closed from outside.
func wasTerminated(info *workflowpb.WorkflowExecutionInfo) bool {
	return info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED || info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT
}

// abandonedAttempts lists the attempts that an execution had under way when it was closed from outside, including those
// of child runs that were closed with it. The list is empty if the execution is open or ended by itself.
func abandonedAttempts(ctx context.Context, c client.Client, id, runID string) ([]*historyv1.AwaitAnswerRequest, error) {
	return abandonedBelow(ctx, c, id, runID, 0)
}

func abandonedBelow(ctx context.Context, c client.Client, id, runID string, depth int) ([]*historyv1.AwaitAnswerRequest, error) {
	desc, err := c.DescribeWorkflowExecution(ctx, id, runID)
	if _, unknown := errors.AsType[*serviceerror.NotFound](err); unknown {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", id, err)
	}
	info := desc.GetWorkflowExecutionInfo()
	if !wasTerminated(info) {
		return nil, nil
	}
	o := openWork{
		closedAt: info.GetCloseTime().AsTime(), timeouts: map[string]time.Duration{},
		attempts: map[string]*historyv1.AwaitAnswerRequest{}, scheduled: map[int64]string{}, children: map[int64]string{},
	}
	for _, p := range desc.GetPendingActivities() {
		o.timeouts[p.GetActivityId()] = p.GetActivityOptions().GetHeartbeatTimeout().AsDuration()
	}
	events := c.GetWorkflowHistory(ctx, id, info.GetExecution().GetRunId(), false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return nil, fmt.Errorf("read the history of %s: %w", id, err)
		}
		o.apply(event)
	}
	var all []*historyv1.AwaitAnswerRequest
	for _, name := range slices.Sorted(maps.Keys(o.attempts)) {
		all = append(all, o.attempts[name])
	}
	for _, initiated := range slices.Sorted(maps.Keys(o.children)) {
		_, isPartition := names.ParseFanOutID(o.children[initiated])
		if depth == maxAbandonedDepth || isPartition && depth == 0 {
			continue // the next generation of a partition waits for the attempts of the previous one
		}
		below, err := abandonedBelow(ctx, c, o.children[initiated], "", depth+1)
		if err != nil {
			return nil, err
		}
		all = append(all, below...)
	}
	return all, nil
}

// openWork collects from a history what an execution has under way.
type openWork struct {
	closedAt  time.Time
	timeouts  map[string]time.Duration                 // heartbeat time-outs of the activities under way, by activity id
	attempts  map[string]*historyv1.AwaitAnswerRequest // by activity id
	scheduled map[int64]string                         // activity ids, by event
	children  map[int64]string                         // workflow ids, by event
}

func (o *openWork) apply(event *historypb.HistoryEvent) {
	switch a := event.GetAttributes().(type) {
	case *historypb.HistoryEvent_ActivityTaskScheduledEventAttributes:
		o.schedule(event.GetEventId(), a.ActivityTaskScheduledEventAttributes)
	case *historypb.HistoryEvent_ActivityTaskCompletedEventAttributes:
		o.complete(a.ActivityTaskCompletedEventAttributes, event.GetEventTime().AsTime())
	case *historypb.HistoryEvent_ActivityTaskFailedEventAttributes:
		o.end(a.ActivityTaskFailedEventAttributes.GetScheduledEventId())
	case *historypb.HistoryEvent_ActivityTaskTimedOutEventAttributes:
		o.end(a.ActivityTaskTimedOutEventAttributes.GetScheduledEventId())
	case *historypb.HistoryEvent_ActivityTaskCanceledEventAttributes:
		o.end(a.ActivityTaskCanceledEventAttributes.GetScheduledEventId())
	case *historypb.HistoryEvent_StartChildWorkflowExecutionInitiatedEventAttributes:
		o.children[event.GetEventId()] = a.StartChildWorkflowExecutionInitiatedEventAttributes.GetWorkflowId()
	case *historypb.HistoryEvent_StartChildWorkflowExecutionFailedEventAttributes:
		delete(o.children, a.StartChildWorkflowExecutionFailedEventAttributes.GetInitiatedEventId())
	case *historypb.HistoryEvent_ChildWorkflowExecutionCompletedEventAttributes:
		delete(o.children, a.ChildWorkflowExecutionCompletedEventAttributes.GetInitiatedEventId())
	case *historypb.HistoryEvent_ChildWorkflowExecutionFailedEventAttributes:
		delete(o.children, a.ChildWorkflowExecutionFailedEventAttributes.GetInitiatedEventId())
	case *historypb.HistoryEvent_ChildWorkflowExecutionCanceledEventAttributes:
		delete(o.children, a.ChildWorkflowExecutionCanceledEventAttributes.GetInitiatedEventId())
	}
}

func (o *openWork) schedule(event int64, a *historypb.ActivityTaskScheduledEventAttributes) {
	var waits historyv1.AwaitAnswerRequest // an activity of this generation waits for an attempt of the previous one
	if a.GetActivityType().GetName() == names.AwaitAnswerActivity && decodeFirst(a.GetInput(), &waits) == nil && waits.GetClosedAt() != nil {
		o.scheduled[event], o.attempts[a.GetActivityId()] = a.GetActivityId(), &waits
		return
	}
	var req historyv1.ExecuteRequest
	if a.GetActivityType().GetName() != names.ExecuteActivity || decodeFirst(a.GetInput(), &req) != nil {
		return
	}
	o.scheduled[event] = a.GetActivityId()
	o.attempts[a.GetActivityId()] = &historyv1.AwaitAnswerRequest{
		Attempt: attemptOf(&req), ClosedAt: timestamppb.New(o.closedAt), LeaseUntil: timestamppb.New(o.closedAt.Add(o.lease(a, &req))),
	}
}

// lease returns how long the attempt of an activity may run on a silent node.
func (o *openWork) lease(a *historypb.ActivityTaskScheduledEventAttributes, req *historyv1.ExecuteRequest) time.Duration {
	first := cmp.Or(max(a.GetHeartbeatTimeout().AsDuration(), 0), defaultHeartbeat)
	if req.GetReattach() { // until its node hears of it, the attempt has the lease with which an earlier activity left it
		first = max(first, req.GetMaxLease().AsDuration(), limits.Run{}.WithDefaults().DetachedLease)
	}
	if last, isKnown := o.timeouts[a.GetActivityId()]; isKnown {
		return max(first, last)
	}
	return max(first, req.GetMaxLease().AsDuration())
}

// complete removes an attempt, unless the answer says that the attempt continues without its activity.
func (o *openWork) complete(a *historypb.ActivityTaskCompletedEventAttributes, at time.Time) {
	var res historyv1.ExecuteResponse
	open := o.attempts[o.scheduled[a.GetScheduledEventId()]]
	if open == nil || decodeFirst(a.GetResult(), &res) != nil || res.GetState() != v1.AttemptDetached {
		o.end(a.GetScheduledEventId())
		return
	}
	if until := at.Add(max(limits.Run{}.WithDefaults().DetachedLease, res.GetLease().AsDuration())); until.After(open.GetLeaseUntil().AsTime()) {
		open.LeaseUntil = timestamppb.New(until)
	}
}

func (o *openWork) end(scheduled int64) { delete(o.attempts, o.scheduled[scheduled]) }

func decodeFirst(p *commonpb.Payloads, into proto.Message) error {
	return dataconverter.New().FromPayloads(p, into)
}

// attemptOf returns the part of a request that identifies its attempt.
func attemptOf(req *historyv1.ExecuteRequest) *historyv1.ExecuteRequest {
	of := &historyv1.ExecuteRequest{
		RunId: req.GetRunId(), Chain: req.GetChain(), Generation: req.GetGeneration(), Task: req.GetTask(), Index: req.Index, Count: req.GetCount(),
		Attempt: req.GetAttempt(), Claim: req.GetClaim(), Node: req.GetNode(), Type: req.GetType(), Reattach: true,
	}
	for _, m := range req.GetBatch() {
		of.Batch = append(of.Batch, &historyv1.Member{Index: m.GetIndex(), Attempt: m.GetAttempt(), Claim: m.GetClaim()})
	}
	return of
}

// recordsOf returns the references of the records that an attempt may leave, by task or instance.
func recordsOf(req *historyv1.ExecuteRequest) map[string]string {
	home := names.Home(req.GetRunId(), req.GetChain())
	if len(req.GetBatch()) == 0 {
		name := unitName(req)
		return map[string]string{name: storekey.Result(home, req.GetGeneration(), name, req.GetAttempt())}
	}
	first, last := req.GetIndex(), req.GetIndex()
	for _, m := range req.GetBatch() {
		first, last = min(first, m.GetIndex()), max(last, m.GetIndex())
	}
	key := storekey.Batch(home, req.GetGeneration(), storekey.BatchName(req.GetTask(), int(first), int(last)), req.GetAttempt(), req.GetClaim())
	all := map[string]string{}
	for _, m := range req.GetBatch() {
		all[names.InstanceName(req.GetTask(), int(m.GetIndex()))] = store.MemberReference(key, m.GetIndex())
	}
	return all
}

// unitName returns the task or instance of an attempt, or the first instance of a batch.
func unitName(req *historyv1.ExecuteRequest) string {
	if req.Index == nil {
		return req.GetTask()
	}
	return names.InstanceName(req.GetTask(), int(req.GetIndex()))
}
