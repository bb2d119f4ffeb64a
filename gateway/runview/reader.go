package runview

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"switchyard/activities/store"
	"switchyard/gateway/rpcerror"
	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/names"
)

const (
	// queryTimeout bounds one query. A run without a worker does not answer.
	queryTimeout = 5 * time.Second
	// patience is how long a call or a log stream waits for a run that does not answer.
	patience = 10 * time.Second
	// maxListPatience and minListPatience bound how long a list waits for one of its runs.
	maxListPatience, minListPatience = 3 * time.Second, 500 * time.Millisecond
	// retryPause is the pause before a run that did not answer is queried again.
	retryPause = 200 * time.Millisecond
)

// Description is Temporal's description of an execution.
type Description = workflowservice.DescribeWorkflowExecutionResponse

// Reader reads the state of runs. It caches their replies for a few seconds.
type Reader struct {
	client    client.Client
	namespace string
	store     *store.Store
	log       *slog.Logger
	statuses  statusCache

	stuckParts stuckParts
}

// NewReader returns a reader of the runs in a Temporal namespace, with their results in a store.
func NewReader(c client.Client, namespace string, kept *store.Store, log *slog.Logger) *Reader {
	return &Reader{client: c, namespace: namespace, store: kept, log: log}
}

// Describe returns Temporal's description of a run. A workflow of another type is reported as not found.
func (r *Reader) Describe(ctx context.Context, id string) (*Description, error) {
	desc, err := r.client.DescribeWorkflowExecution(ctx, id, "")
	if err == nil && desc.GetWorkflowExecutionInfo().GetType().GetName() != names.RunWorkflow {
		return nil, rpcerror.NoRun(id)
	}
	if err != nil && rpcerror.IsPermanent(err) {
		return nil, rpcerror.NoRun(id)
	}
	return desc, err
}

// queryStatus queries the workflow of a run for all changes after a revision.
func (r *Reader) queryStatus(ctx context.Context, info *workflowpb.WorkflowExecutionInfo, since int64) ([]*historyv1.StatusResponse, error) {
	return r.queryStatusSince(ctx, info, &historyv1.StatusRequest{Since: since})
}

// queryStatusSince queries the workflow of a run for all changes after the revision in req, over as many responses as that
// takes.
func (r *Reader) queryStatusSince(ctx context.Context, info *workflowpb.WorkflowExecutionInfo, req *historyv1.StatusRequest) ([]*historyv1.StatusResponse, error) {
	id := info.GetExecution().GetWorkflowId()
	var answers []*historyv1.StatusResponse
	for since := req.GetSince(); ; {
		answer := &historyv1.StatusResponse{}
		if err := r.Query(ctx, id, names.StatusQuery, &historyv1.StatusRequest{Since: since, Checkpoints: req.GetCheckpoints()}, answer); err != nil {
			return nil, fmt.Errorf("query the status of run %s: %w", id, err)
		}
		setOrigin(answer.GetRun(), info)
		answers = append(answers, answer)
		if answer.GetRevision() < since {
			// Another execution under the same id counts revisions anew.
			answers, since = nil, 0
			continue
		}
		if !answer.GetMore() {
			return answers, nil
		}
		since = answer.GetRevision()
	}
}

// Read reads the whole state of a run. It repeats queries to a run that does not answer until patience has passed. The
// view is shared and must not be changed.
func (r *Reader) Read(ctx context.Context, id string) (*View, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var silence error // the last failed query, which says more than the end of ctx
	for {
		v, err := r.readOnce(ctx, id)
		switch {
		case err == nil || rpcerror.IsPermanent(err) || IsUnreadable(err):
			return v, err
		case errors.Is(err, errNoAnswer):
			silence = err
		case ctx.Err() != nil && silence != nil:
			err = silence
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("run %s does not answer; is a control worker up?: %w", id, err)
		case <-time.After(retryPause):
		}
	}
}

// Listing reads the runs of one list. Runs that do not answer share the patience of one call, so that they delay the list, and do
// not fail it. It is safe for concurrent use.
type Listing struct {
	reader *Reader
	left   atomic.Int64 // a time.Duration
}

// NewListing returns a reader for the runs of a list.
func (r *Reader) NewListing() *Listing {
	l := &Listing{reader: r}
	l.left.Store(int64(patience))
	return l
}

// Read reads the state of a run. If the error is of that run alone, IsOfOneRun holds for it, and the list continues without the run.
func (l *Listing) Read(ctx context.Context, id string) (*View, error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, min(max(time.Duration(l.left.Load()), minListPatience), maxListPatience))
	defer cancel()
	v, err := l.reader.Read(ctx, id)
	if err != nil {
		l.left.Add(-int64(time.Since(began)))
	}
	return v, err
}

// IsOfOneRun reports whether an error stems from the state of one run, so that other runs can be read.
func IsOfOneRun(err error) bool { return IsUnreadable(err) || errors.Is(err, errNoAnswer) }

// ReadSettled reads the whole state of a run, and returns Temporal's description of the same execution.
func (r *Reader) ReadSettled(ctx context.Context, id string) (*Description, *View, error) {
	for {
		before, err := r.Describe(ctx, id)
		if err != nil {
			return nil, nil, err
		}
		v, err := r.Read(ctx, id)
		if err != nil {
			return nil, nil, err
		}
		after, err := r.Describe(ctx, id)
		if err != nil {
			return nil, nil, err
		}
		if before.GetWorkflowExecutionInfo().GetExecution().GetRunId() == after.GetWorkflowExecutionInfo().GetExecution().GetRunId() {
			return after, v, nil
		}
	}
}

func (r *Reader) readOnce(ctx context.Context, id string) (*View, error) {
	desc, err := r.Describe(ctx, id)
	if err != nil {
		return nil, err
	}
	info := desc.GetWorkflowExecutionInfo()
	if !IsOpen(info.GetStatus()) {
		said, err := r.closedStatus(ctx, desc)
		if err != nil {
			return nil, err
		}
		return said.viewWith(id, nil), nil
	}
	running, problem := RunningAttempts(desc.GetPendingActivities(), time.Now()), r.problem(ctx, desc)
	so, err := r.OpenStatus(ctx, info)
	if problem == "" {
		if err != nil {
			return nil, err
		}
		return so.viewWith(id, running), nil
	}
	var status *historyv1.StatusResponse
	if err == nil {
		status = withProblem(so.Status, problem)
	} else if status, err = r.stuckStatus(ctx, info, problem); err != nil {
		return nil, err
	}
	return (&CachedStatus{Status: status}).viewWith(id, running), nil
}

// closedStatus returns the whole status of a closed run.
func (r *Reader) closedStatus(ctx context.Context, desc *Description) (*CachedStatus, error) {
	exec := desc.GetWorkflowExecutionInfo().GetExecution()
	if known := r.statuses.get(exec.GetWorkflowId(), exec.GetRunId()); known != nil && known.events == closedEvents {
		return known, nil
	}
	status, err := r.FinalStatus(ctx, desc)
	if err != nil {
		return nil, err
	}
	return r.statuses.add(exec.GetWorkflowId(), exec.GetRunId(), closedEvents, status), nil
}

// closedEvents stands for all events of a closed execution.
const closedEvents = -1

// OpenStatus returns the whole status of an open run. The status follows from the history of the workflow, so the workflow
// is queried only for changes since the last query.
func (r *Reader) OpenStatus(ctx context.Context, info *workflowpb.WorkflowExecutionInfo) (*CachedStatus, error) {
	id, execution := info.GetExecution().GetWorkflowId(), info.GetExecution().GetRunId()
	known := r.statuses.get(id, execution)
	if known != nil && known.events == info.GetHistoryLength() {
		return known, nil
	}
	var answers []*historyv1.StatusResponse
	if known != nil {
		newer, err := r.queryStatus(ctx, info, known.Status.GetRevision())
		if err != nil {
			return nil, err
		}
		if newer[0].GetRun().GetGeneration() == known.Status.GetRun().GetGeneration() {
			answers = append([]*historyv1.StatusResponse{known.Status}, newer...)
		}
	}
	if answers == nil {
		var err error
		if answers, err = r.queryStatus(ctx, info, 0); err != nil {
			return nil, err
		}
	}
	return r.statuses.add(id, execution, info.GetHistoryLength(), mergeAnswers(answers)), nil
}
