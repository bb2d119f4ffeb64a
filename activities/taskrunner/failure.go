package taskrunner

import (
	"cmp"
	"fmt"
	"strings"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

const (
	// maxFailureDetails bounds the encoded answer of a failure, in bytes. Temporal drops the details of a failure of more
	// than 2 MB (limit.blobSize.error); the rest is for the message.
	maxFailureDetails = 1900 << 10
	// maxFailureMessage bounds the message of a failure, in bytes. The answer holds the whole text.
	maxFailureMessage = 2 << 10
)

// activityEnd returns the end of an activity that waited for an attempt, given the attempt's answer or the fault of the
// node. Temporal shows an activity as failed only if it returns an error. Therefore the answer of a failed attempt, or of
// a batch with a failed instance, travels in the details of an error. The error is benign and counts in no metric of the
// node's faults.
func activityEnd(res *historyv1.ExecuteResponse, err error) (*historyv1.ExecuteResponse, error) {
	message, failed := failureMessage(res)
	if err != nil || !failed {
		return res, err
	}
	details, err := converter.GetDefaultDataConverter().ToPayload(res)
	if err != nil || len(details.GetData()) > maxFailureDetails {
		return res, nil // refused by the worker's converter, with a reason
	}
	message = strings.ToValidUTF8(message[:min(len(message), maxFailureMessage)], "")
	return nil, temporal.NewApplicationErrorWithOptions(message, names.AttemptFailedError, temporal.ApplicationErrorOptions{
		NonRetryable: true, Category: temporal.ApplicationErrorCategoryBenign, Details: []any{converter.NewRawValue(details)},
	})
}

// failureMessage returns the message of a failed attempt, and reports whether the attempt failed.
func failureMessage(res *historyv1.ExecuteResponse) (message string, failed bool) {
	if v1.IsRetryableEnd(res.GetState()) {
		return cmp.Or(res.GetError(), res.GetReason(), res.GetState()), true
	}
	count := 0
	for _, m := range res.GetBatch() {
		if !v1.IsRetryableEnd(m.GetState()) {
			continue
		}
		if count++; count == 1 {
			message = fmt.Sprintf("instance %d: %s", m.GetIndex(), cmp.Or(m.GetError(), m.GetReason(), m.GetState()))
		}
	}
	if count > 1 {
		message = fmt.Sprintf("%d instances failed; the first, %s", count, message)
	}
	return message, count > 0
}
