package drill

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

// Soak runs random runs under random faults, and counts what is lost, doubled or stuck.
type Soak struct {
	Length time.Duration
	// Seed seeds the random choices. 0 means a random seed.
	Seed uint64
}

const (
	soakWorkers = 4
	// soakOpen is the number of runs in progress at once.
	soakOpen = 6
)

// Run runs the soak. It returns an error if anything is lost, doubled or stuck.
func (s Soak) Run(ctx context.Context, o Options) error {
	if s.Seed == 0 {
		s.Seed = rand.Uint64()
	}
	y, err := openCluster(ctx, o)
	if err != nil {
		return err
	}
	return errors.Join(s.run(y), y.close())
}

func (s Soak) run(y *Cluster) error {
	y.report("seed %d", s.Seed)
	if err := y.startServer(); err != nil {
		return err
	}
	for range 2 {
		if err := y.startGateway(); err != nil {
			return err
		}
	}
	y.workerEnv = []string{"SWITCHYARD_ON_STOP=keep", "SWITCHYARD_DRAIN_TIMEOUT=2s"}
	var workers []string
	for i := range soakWorkers {
		workers = append(workers, fmt.Sprintf("n%d", i))
	}
	if err := y.startWorkers(workers...); err != nil {
		return err
	}
	over := make(chan struct{})
	t := &tally{}
	var users sync.WaitGroup
	for i := range soakOpen {
		dice := rand.New(rand.NewPCG(s.Seed, uint64(i)))
		users.Go(func() {
			for n := 0; !done(over); n++ {
				t.add(y.soakRun(fmt.Sprintf("soak-%d-%d", i, n), dice))
			}
		})
	}
	faults := &faults{cluster: y, workers: workers, dice: rand.New(rand.NewPCG(s.Seed, soakOpen)), counts: map[string]int{}}
	faultErr := faults.run(s.Length)
	close(over)
	users.Wait()
	t.write(y)
	y.report("faults: %v", faults.counts)
	return errors.Join(faultErr, t.err(), y.atMost(1, t.mutex, "mutex"), y.atMost(2, t.semaphore, "semaphore"), y.inTurn(soakTurns, t.children))
}

func done(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// soakRun runs a random workflow to its end. It retries a failed run.
func (y *Cluster) soakRun(name string, dice *rand.Rand) outcome {
	d := y.random(name, dice)
	id, err := y.submit(d)
	if err != nil {
		return outcome{broken: err}
	}
	r, err := y.awaitEnd(id)
	retries := 0
	for ; err == nil && r.State == v1.RunFailed && retries < soakRetries; retries++ {
		if err := y.retry(r); err != nil {
			return outcome{broken: err}
		}
		r, err = y.awaitEnd(id)
	}
	if err != nil {
		return outcome{stuck: fmt.Errorf("run %s: %w", id, err)}
	}
	v, err := y.judge(r)
	if err != nil {
		return outcome{broken: err}
	}
	if r.State != v1.RunCompleted {
		v.lost = append(v.lost, fmt.Errorf("run %s is %s: %s", id, r.State, r.Error))
	}
	if len(r.Tasks) != len(d.Tasks) {
		v.lost = append(v.lost, fmt.Errorf("run %s has %d tasks, not %d", id, len(r.Tasks), len(d.Tasks)))
	}
	if r.Generation != retries {
		v.doubled = append(v.doubled, fmt.Errorf("run %s was retried %d times and is in generation %d", id, retries, r.Generation))
	}
	o := outcome{verdict: v, retries: retries}
	for name, task := range r.Tasks {
		if d.Tasks[name].Mutex != "" {
			o.mutex = append(o.mutex, place{id, name})
		}
		if d.Tasks[name].Semaphore != nil {
			o.semaphore = append(o.semaphore, place{id, name})
		}
		if task.ChildRun != "" {
			o.children = append(o.children, task.ChildRun)
		}
	}
	return o
}

const (
	// soakRetries is how often a run of the soak is retried. Faults also fail its tasks.
	soakRetries = 20
	// soakTurns is the most child runs of the soak in progress at once.
	soakTurns = 3
)

// retry retries a failed run. A gateway that died during an earlier call may already have done so.
func (y *Cluster) retry(failed *run) error {
	_, err := y.must("runs", "retry", failed.ID)
	if err == nil {
		return nil
	}
	if r, getErr := y.get(failed.ID); getErr == nil && r.Generation > failed.Generation {
		return nil
	}
	return err
}

// random returns a workflow of layers of tasks that take 0.1 to 5 s. Some tasks fail at first, or always; some fan out,
// some share a mutex or a semaphore, and some run another workflow.
func (y *Cluster) random(name string, dice *rand.Rand) definition {
	d := definition{Name: name, Tasks: map[string]taskSpec{}}
	var before []string
	for layer := range 1 + dice.IntN(4) {
		var names []string
		for i := range 1 + dice.IntN(5) {
			task := fmt.Sprintf("l%d-%d", layer, i)
			names = append(names, task)
			d.Tasks[task] = y.randomTask(name+"-"+task, before, dice)
		}
		before = names
	}
	return d
}

func (y *Cluster) randomTask(name string, before []string, dice *rand.Rand) taskSpec {
	j := job{ticks: 1 + dice.IntN(4), tick: 0.1, after: before}
	switch dice.IntN(16) {
	case 0:
		j.ticks, j.tick = 10, 0.5
	case 1:
		j.fails = 1 + dice.IntN(2)
	case 2:
		j.tree = true
	case 3:
		j.instances = 1 + dice.IntN(8)
	case 4:
		j.ticks, j.instances, j.batch = 1, 10+dice.IntN(20), 5
	case 5:
		j.ticks, j.instances, j.batch, j.fails = 0, 10+dice.IntN(20), "auto", dice.IntN(2)
	case 6:
		j.mutex = "soak"
	case 11:
		j.semaphore = map[string]any{"name": "soak-two", "limit": 2}
	case 7:
		j.counts, j.ticks = true, 20
	case 10:
		if dice.IntN(4) == 0 { // rare, because such a fan-out takes as long as all other tasks
			j.ticks, j.instances, j.batch = 0, y.Scale.Instances, "auto"
		}
	case 8:
		j.once = y.gate(name)
		t := y.task(j)
		t.Retry["maxRetries"] = 0
		return t
	case 9:
		child := y.crowd("soak-child", 1, job{ticks: j.ticks})
		child.Tasks["after"] = y.task(job{after: namesOf(child)})
		for _, t := range child.Tasks {
			t.Retry["maxRetries"] = 50
		}
		child.Concurrency = map[string]any{"maxRuns": soakTurns}
		return childRun(child, before...)
	}
	t := y.task(j)
	t.Retry["maxRetries"] = 50 // faults also spend attempts
	return t
}
