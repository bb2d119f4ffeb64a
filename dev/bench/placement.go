package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/protobuf/proto"

	"switchyard/activities/placement"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	placedTasks = 10_000
	placedKinds = 20
	placedRuns  = 10
)

// benchPlacement measures only the placement queue, without a server, on synthetic fleets. It reports processor time,
// which other load on the machine does not change; on an idle machine it equals the elapsed time.
func benchPlacement(_ context.Context, rounds int, _ string) error {
	fmt.Printf("placement of %d tasks of %d kinds from %d runs, processor time, medians of %d rounds\n\n", placedTasks, placedKinds, placedRuns, rounds)
	fmt.Println("| nodes | at once | one by one, three quarters full | new snapshots of all nodes, and the pass after |")
	fmt.Println("|--:|--:|--:|--:|")
	var first, last placementFigures
	for i, nodes := range []int{1000, 10_000} {
		var all []placementFigures
		for range rounds {
			f, err := measurePlacement(nodes)
			if err != nil {
				return fmt.Errorf("%d nodes: %w", nodes, err)
			}
			all = append(all, f)
		}
		last = medianFigures(all)
		if i == 0 {
			first = last
		}
		fmt.Printf("| %d | %s | %s | %s |\n", nodes, rate(last.atOnce), rate(last.oneByOne), last.refresh.Round(100*time.Microsecond))
	}
	fmt.Printf("\na decision among ten times as many nodes costs %.2f times as much at once, %.2f times one by one\n",
		last.atOnce.Seconds()/first.atOnce.Seconds(), last.oneByOne.Seconds()/first.oneByOne.Seconds())
	return benchWaiting(rounds)
}

const (
	waitingClasses = 1000
	waitingNodes   = 1000
	waitingPasses  = 2000
)

// benchWaiting measures a pass over many waiting classes of ten owners on a full fleet, after the end of an attempt: with turns and
// reservations, and in the order of arrival without them.
func benchWaiting(rounds int) error {
	var fair, plain []time.Duration
	for range rounds {
		for _, side := range []struct {
			all *[]time.Duration
			placement.Options
		}{{&fair, placement.Options{}}, {&plain, placement.Options{FIFO: true, NoReservations: true}}} {
			d, err := measureWaiting(side.Options)
			if err != nil {
				return err
			}
			*side.all = append(*side.all, d)
		}
	}
	a, b := median(fair), median(plain)
	fmt.Printf("\na pass over %d waiting classes on %d full nodes takes %s with turns and reservations, and %s without: %.2f times as much\n",
		waitingClasses, waitingNodes, (a / waitingPasses).Round(time.Microsecond), (b / waitingPasses).Round(time.Microsecond), a.Seconds()/b.Seconds())
	return nil
}

// measureWaiting returns the processor time of waitingPasses passes.
func measureWaiting(options placement.Options) (time.Duration, error) {
	now := time.Now()
	options.Now, options.Rand = func() time.Time { return now }, rand.New(rand.NewPCG(1, 2))
	q := placement.New(options)
	q.SetNodes(madeUpFleet(waitingNodes, 1))
	task := func(name string, cores float64) *historyv1.TaskRequest {
		return &historyv1.TaskRequest{Task: name, Claim: 1, Type: v1.TypeShell, Resources: &v1.Resources{Cores: proto.Float64(cores)}}
	}
	var full []*historyv1.TaskRequest
	for i := range waitingNodes * 16 {
		full = append(full, task(fmt.Sprintf("full-%d", i), 1))
	}
	q.Request(placement.Run{ID: "full"}, full)
	q.Place()
	held, _ := q.Take("full")
	if len(held) != len(full) {
		return 0, fmt.Errorf("%d of %d tasks fill the fleet", len(held), len(full))
	}
	for i := range waitingClasses {
		run := placement.Run{ID: fmt.Sprintf("run-%d", i%50), Owner: fmt.Sprintf("owner-%d", i%10)}
		q.Request(run, []*historyv1.TaskRequest{task(fmt.Sprintf("waits-%d", i), 1+float64(i)/waitingClasses)})
	}
	q.Place()
	began := processorTime()
	for i := range waitingPasses {
		now = now.Add(10 * time.Millisecond)
		q.Release("full", []*historyv1.ClaimRef{{Task: held[i*7%len(held)].GetTask(), Claim: 1, Outcome: v1.OutcomeDone}})
		for _, run := range q.Place() {
			q.Take(run)
		}
	}
	return processorTime() - began, nil
}

// placementFigures holds the times of placedTasks decisions and of one refresh.
type placementFigures struct{ atOnce, oneByOne, refresh time.Duration }

func medianFigures(all []placementFigures) placementFigures {
	pick := func(of func(placementFigures) time.Duration) time.Duration {
		var d []time.Duration
		for _, f := range all {
			d = append(d, of(f))
		}
		return median(d)
	}
	return placementFigures{
		atOnce:   pick(func(f placementFigures) time.Duration { return f.atOnce }),
		oneByOne: pick(func(f placementFigures) time.Duration { return f.oneByOne }),
		refresh:  pick(func(f placementFigures) time.Duration { return f.refresh }),
	}
}

func rate(d time.Duration) string {
	return fmt.Sprintf("%.0f/s, %s each", placedTasks/d.Seconds(), (d / placedTasks).Round(10*time.Nanosecond))
}

// measurePlacement measures a fleet with the given number of nodes.
func measurePlacement(nodes int) (f placementFigures, err error) {
	now := time.Now()
	options := placement.Options{Now: func() time.Time { return now }, Rand: rand.New(rand.NewPCG(1, 2))}
	q := placement.New(options)
	q.SetNodes(madeUpFleet(nodes, 1))
	began := processorTime()
	held := placeAtOnce(q, 0, placedTasks)
	f.atOnce = processorTime() - began
	if len(held) != placedTasks {
		return f, fmt.Errorf("%d of %d tasks found a place", len(held), placedTasks)
	}

	// A full fleet is harder, because most nodes that the queue checks have no room.
	q = placement.New(options)
	q.SetNodes(madeUpFleet(nodes, 1))
	first := 12 * nodes
	held = placeAtOnce(q, 0, first)
	began = processorTime()
	placed := 0
	for i := range placedTasks {
		now = now.Add(time.Millisecond) // attempts take longer than a second, so no queue is filled ahead
		done := held[i]
		q.Release(done.run, []*historyv1.ClaimRef{{Task: done.task, Claim: 1, Outcome: "done"}})
		run := done.run
		q.Request(placement.Run{ID: run}, []*historyv1.TaskRequest{madeUpTask(first + i)})
		q.Place()
		more, _ := q.Take(run)
		placed += len(more)
		for _, a := range more {
			held = append(held, heldTask{run, a.GetTask()})
		}
	}
	f.oneByOne = processorTime() - began
	if placed < placedTasks*3/4 {
		return f, fmt.Errorf("%d of %d tasks found a place one by one", placed, placedTasks)
	}

	fresh := madeUpFleet(nodes, 2)
	now = now.Add(time.Second)
	began = processorTime()
	q.SetNodes(fresh)
	q.Place()
	f.refresh = processorTime() - began
	return f, nil
}

type heldTask struct{ run, task string }

// placeAtOnce requests tasks from all runs and returns those that got a node.
func placeAtOnce(q *placement.Queue, first, n int) []heldTask {
	for r := range placedRuns {
		var reqs []*historyv1.TaskRequest
		for i := first + r; i < first+n; i += placedRuns {
			reqs = append(reqs, madeUpTask(i))
		}
		q.Request(placement.Run{ID: fmt.Sprintf("run-%d", r)}, reqs)
	}
	var held []heldTask
	for _, run := range q.Place() {
		placed, _ := q.Take(run)
		for _, a := range placed {
			held = append(held, heldTask{run, a.GetTask()})
		}
	}
	return held
}

// madeUpFleet returns machines of 16 cores in four zones. Every fourth machine has four GPUs on two NUMA nodes.
func madeUpFleet(n int, sequence int64) []placement.Node {
	fleet := make([]placement.Node, n)
	for i := range fleet {
		s := &v1.NodeSnapshot{
			Name: fmt.Sprintf("node-%05d", i), Sequence: sequence, MaxParallel: 16,
			Executors: []string{"container", "shell"}, Labels: []string{"server", fmt.Sprintf("zone-%d", i%4)},
			Cpu:     &v1.CpuSnapshot{Cores: 16, UsagePercent: float64((i*7 + int(sequence)*13) % 100)},
			Memory:  &v1.MemorySnapshot{TotalMb: 65536, AvailableMb: 40000 + float64((i*31+int(sequence)*17)%20000)},
			Disk:    &v1.DiskSnapshot{TotalGb: 500, AvailableGb: 200, IoUtilPercent: float64(i % 30)},
			Network: &v1.NetworkSnapshot{BandwidthMbps: 10_000, ThroughputMbps: float64(i % 5000)},
		}
		if i%4 == 0 {
			s.Labels = append(s.Labels, "gpu")
			for g := range int32(4) {
				s.Gpus = append(s.Gpus, &v1.GpuSnapshot{Index: g, NumaNode: proto.Int32(g / 2)})
			}
			for node := range int32(2) {
				s.Numa = append(s.Numa, &v1.NumaSnapshot{Index: node, Cpus: make([]int32, 8), MemoryTotalMb: 32768})
			}
		}
		fleet[i] = placement.Node{Snapshot: s, State: v1.NodeActive}
	}
	return fleet
}

// madeUpTask returns the i-th task. There are placedKinds kinds of tasks in three priorities.
func madeUpTask(i int) *historyv1.TaskRequest {
	kind := i % placedKinds
	r := &historyv1.TaskRequest{
		Task: fmt.Sprintf("task-%d", i), Claim: 1, Type: "shell", Priority: int32(kind % 3), Constraints: &v1.Constraints{},
		Resources: &v1.Resources{Cores: proto.Float64([]float64{0.25, 0.5, 1, 1.5}[kind%4]), MemoryMb: int32(kind%5) * 256},
	}
	switch {
	case kind == 0:
		r.Resources.Gpus = 1
	case kind < 7:
		r.Constraints.NodeLabels = []string{"server", fmt.Sprintf("zone-%d", kind%4)}
	case kind < 9:
		r.Constraints.AnyLabels = []string{"gpu", "zone-2"}
	case kind == 9:
		r.Constraints.MinDiskGb = 20
	case kind == 10:
		r.Constraints.ForbiddenNodes = []string{"node-00007"}
	}
	return r
}
