package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/executor/k8sjob"
	"switchyard/dev/kubetest"
	"switchyard/dev/processes"
)

// k8sWaitFor is how long the processor time for waiting Jobs is measured.
const k8sWaitFor = 20 * time.Second

// waiting measures what long-running Jobs cost this process.
func (b *k8sBench) waiting(ctx context.Context, _ int) (err error) {
	namespace, err := b.cluster.MakeNamespace(ctx)
	if err != nil {
		return err
	}
	clusters, err := b.open(nil)
	if err != nil {
		return err
	}
	defer clusters.Close()
	e := k8sjob.New(k8sjob.Options{Clusters: clusters})
	defer e.Close()
	first, err := b.attempt(namespace, nil)
	if err != nil {
		return err
	}
	if err := runJob(ctx, e, first); err != nil { // keeps the start of the watches out of the measurement
		return err
	}
	running := map[string]any{kubetest.RunsForAnnotation: "1h", kubetest.LogAnnotation: "started"}
	attempts, heard := make([]executor.Attempt, manyJobs), make(chan struct{}, manyJobs)
	for i := range attempts {
		if attempts[i], err = b.attempt(namespace, running); err != nil {
			return err
		}
		attempts[i].Stdout = writer(func(p []byte) (int, error) { heard <- struct{}{}; return len(p), nil })
	}
	heapBefore, goroutinesBefore := heap(), runtime.NumGoroutine()
	letGo, stop := context.WithCancelCause(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- each(len(attempts), func(i int) error {
			_, err := e.Run(letGo, attempts[i], func() {})
			return err
		})
	}()
	defer func() {
		stop(executor.ErrLetGo)
		err = errors.Join(err, <-ended, b.clear(ctx, namespace))
	}()
	for range attempts {
		select {
		case <-heard:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := processes.Pause(ctx, k8sBaseline); err != nil {
		return err
	}
	memory, goroutines := heap()-heapBefore, runtime.NumGoroutine()-goroutinesBefore
	before := processorTime()
	if err := processes.Pause(ctx, k8sWaitFor); err != nil {
		return err
	}
	used := processorTime() - before
	fmt.Printf("%d Jobs that run, their logs followed: %.1f KiB of heap and stacks and %.1f goroutines a Job; %.2f%% of a core for all.\n",
		manyJobs, float64(memory)/manyJobs/1024, float64(goroutines)/manyJobs, 100*used.Seconds()/k8sWaitFor.Seconds())
	return nil
}

// heap returns the memory of live objects and of stacks.
func heap() int64 {
	runtime.GC()
	runtime.GC() // frees the objects that the first collection finalized
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

type writer func(p []byte) (int, error)

// Write implements io.Writer.
func (w writer) Write(p []byte) (int, error) { return w(p) }
