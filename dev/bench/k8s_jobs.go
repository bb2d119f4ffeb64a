package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/executor/k8sjob"
	"switchyard/dev/processes"
)

const (
	// manyJobs is the number of concurrent Jobs.
	manyJobs = 300
	// k8sBaseline is how long the processor time of the idle process is measured.
	k8sBaseline = 2 * time.Second
)

// jobs measures many concurrent Jobs.
func (b *k8sBench) jobs(ctx context.Context, rounds int) error {
	namespace, err := b.cluster.MakeNamespace(ctx)
	if err != nil {
		return err
	}
	var used, took []time.Duration
	var count *callCount
	for round := range rounds + 1 {
		count = &callCount{}
		cpu, d, err := b.runMany(ctx, namespace, count)
		if err != nil {
			return err
		}
		if round > 0 { // the first round warms the caches
			used, took = append(used, cpu), append(took, d)
		}
	}
	fmt.Printf("%d Jobs of `true` at once: %s of processor time and %.2f calls a Job, %.1f s in all\n",
		manyJobs, inMs(median(used)/manyJobs), float64(count.calls.Load())/manyJobs, median(took).Seconds())
	return nil
}

// runMany runs Jobs through the executor. It returns the processor time of this process for them, and the
// elapsed time.
func (b *k8sBench) runMany(ctx context.Context, namespace string, count *callCount) (used, took time.Duration, err error) {
	clusters, err := b.open(count)
	if err != nil {
		return 0, 0, err
	}
	defer clusters.Close()
	e := k8sjob.New(k8sjob.Options{Clusters: clusters})
	defer e.Close()
	attempts := make([]executor.Attempt, manyJobs)
	for i := range attempts {
		if attempts[i], err = b.attempt(namespace, nil); err != nil {
			return 0, 0, err
		}
	}
	used, took, err = measured(ctx, func() error {
		return each(len(attempts), func(i int) error { return runJob(ctx, e, attempts[i]) })
	})
	return used, took, errors.Join(err, b.clear(ctx, namespace))
}

// runJob runs an attempt to its end and settles it as if its result had been recorded.
func runJob(ctx context.Context, e *k8sjob.Executor, a executor.Attempt) error {
	result, err := e.Run(ctx, a, func() {})
	switch {
	case err != nil:
		return err
	case result.Failure != nil:
		return result.Failure.Err
	case result.ExitCode != 0:
		return fmt.Errorf("the Job ended with %+v", result)
	}
	return e.Recorded(ctx, a)
}

// measured returns the processor time that work uses in this process beyond that of the idle process, and the elapsed
// time.
func measured(ctx context.Context, work func() error) (used, took time.Duration, err error) {
	before := processorTime()
	if err := processes.Pause(ctx, k8sBaseline); err != nil {
		return 0, 0, err
	}
	idle := processorTime() - before
	before, began := processorTime(), time.Now()
	err = work()
	took = time.Since(began)
	used = processorTime() - before
	return used - time.Duration(float64(idle)*took.Seconds()/k8sBaseline.Seconds()), took, err
}

// each calls do concurrently with 0 to n-1, and returns the joined errors.
func each(n int, do func(int) error) error {
	errs := make([]error, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { errs[i] = do(i) })
	}
	group.Wait()
	return errors.Join(errs...)
}
