package dag

import (
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

// A retryPolicy is a v1.RetryPolicy with its defaults filled in.
type retryPolicy struct {
	retries    int32 // 0 means that a failure is never retried
	first      time.Duration
	multiplier float64
	longest    time.Duration
}

// retryPolicyOf returns the retry policy of a task. A task that runs until it is stopped is never retried.
func retryPolicyOf(task *v1.TaskDefinition) retryPolicy {
	if v1.Lasts(task.GetType()) {
		return retryPolicy{}
	}
	return newRetryPolicy(task.GetRetry())
}

func newRetryPolicy(p *v1.RetryPolicy) retryPolicy {
	retries := valueOr(p.GetMaxRetries(), p != nil && p.MaxRetries != nil, 3)
	if p != nil && p.Retryable != nil && !*p.Retryable {
		retries = 0
	}
	return retryPolicy{
		retries:    retries,
		first:      milliseconds(valueOr(p.GetBackoffMs(), p != nil && p.BackoffMs != nil, 1000)),
		multiplier: valueOr(p.GetBackoffMultiplier(), p != nil && p.BackoffMultiplier != nil, 2),
		longest:    milliseconds(valueOr(p.GetMaxBackoffMs(), p != nil && p.MaxBackoffMs != nil, 60_000)),
	}
}

func valueOr[T any](value T, present bool, fallback T) T {
	if present {
		return value
	}
	return fallback
}

func milliseconds(n int32) time.Duration { return time.Duration(max(n, 0)) * time.Millisecond }
