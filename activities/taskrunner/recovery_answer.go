package taskrunner

import (
	"cmp"
	"context"
	"errors"
	"time"

	"go.temporal.io/api/serviceerror"

	"switchyard/activities/executor"
	historyv1 "switchyard/proto/switchyard/history/v1"
)

// complete answers the activity of a reattached attempt, as the end of Execute would. It tries until the server has the
// answer, or until the server has given the task to another node.
func (r *recovery) complete(a *attempt, token []byte, res *historyv1.ExecuteResponse, failure error) {
	if failure == errLetGo {
		return
	}
	res, failure = activityEnd(res, failure)
	var result any
	if failure == nil {
		result = res
	}
	for until := executor.Now().Add(cmp.Or(a.delivery.heartbeat, defaultHeartbeatTimeout)); ; {
		ctx, cancel := context.WithTimeout(context.Background(), completeTimeout)
		err := r.node.Client.CompleteActivity(ctx, token, result, failure)
		cancel()
		if _, gone := errors.AsType[*serviceerror.NotFound](err); err == nil || gone {
			return
		}
		if executor.Now() >= until {
			r.node.Logger.Warn("the end of an attempt was not reported to the server", "run", a.req.GetRunId(), "task", a.members[0].name, "error", err)
			return
		}
		time.Sleep(a.beats.terms.again)
	}
}
