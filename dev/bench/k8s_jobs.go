package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/executor/k8sjob"
)

const (
	// manyJobs is the number of concurrent Jobs.
	manyJobs = 300
	// k8sBaseline is how long the processor time of the idle process is measured.
	k8sBaseline = 2 * time.Second
)

// jobs measures many concurrent Jobs, alternating between the executor and a minimal client.
func (b *k8sBench) jobs(ctx context.Context, rounds int) error {
	namespace, err := b.cluster.MakeNamespace(ctx)
	if err != nil {
		return err
	}
	var ours, theirs, took, byHand []time.Duration
	var count *callCount
	for round := range rounds + 1 {
		count = &callCount{}
		a, aTook, err := b.manyByExecutor(ctx, namespace, count)
		if err != nil {
			return err
		}
		c, cTook, err := b.manyByHand(ctx, namespace)
		if err != nil {
			return fmt.Errorf("by hand: %w", err)
		}
		if round > 0 { // the first round warms the caches
			ours, theirs, took, byHand = append(ours, a), append(theirs, c), append(took, aTook), append(byHand, cTook)
		}
	}
	fmt.Printf("%d Jobs of `true` at once; to reach: less than 3 ms of our own, and 5 calls.\n\n", manyJobs)
	fmt.Println("| | processor time a Job | lowest and highest | calls a Job | wall time |\n|---|--:|--:|--:|--:|")
	line := func(name string, used []time.Duration, calls string, took []time.Duration) {
		middle := median(used)
		fmt.Printf("| %s | %s | %s to %s | %s | %.1f s |\n", name, perJob(middle), perJob(used[0]), perJob(used[len(used)-1]), calls, median(took).Seconds())
	}
	line("executor", ours, fmt.Sprintf("%.2f", count.perJob()), took)
	line("minimal client", theirs, "1", byHand)
	fmt.Printf("\nCalls of the last round: %s.\n", count)
	return nil
}

func perJob(d time.Duration) string { return (d / manyJobs).Round(10 * time.Microsecond).String() }

func (c *callCount) perJob() (calls float64) {
	for _, n := range c.kinds {
		calls += float64(n)
	}
	return calls / manyJobs
}

// String lists the kinds of calls with their counts.
func (c *callCount) String() string {
	var texts []string
	for _, kind := range slices.Sorted(maps.Keys(c.kinds)) {
		texts = append(texts, fmt.Sprintf("%d %s", c.kinds[kind], kind))
	}
	return strings.Join(texts, ", ")
}

// manyByExecutor runs Jobs through the executor. It returns the processor time of this process for them, and the
// elapsed time.
func (b *k8sBench) manyByExecutor(ctx context.Context, namespace string, count *callCount) (used, took time.Duration, err error) {
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
	before := ownUsage()
	if err := sleep(ctx, k8sBaseline); err != nil {
		return 0, 0, err
	}
	idle := ownUsage() - before
	before, began := ownUsage(), time.Now()
	err = work()
	took = time.Since(began)
	used = ownUsage() - before
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
