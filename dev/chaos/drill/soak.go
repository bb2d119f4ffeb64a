package drill

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// Soak runs random runs under random faults and counts what is lost, doubled or stuck.
type Soak struct {
	Length time.Duration
	// Seed of the dice; 0: another one each time.
	Seed uint64
}

const (
	soakWorkers = 4
	// soakOpen is how many runs are under way at once.
	soakOpen = 6
)

// Run runs the soak. It is an error that anything is lost, doubled or stuck.
func (s Soak) Run(ctx context.Context, o Options) error {
	if s.Seed == 0 {
		s.Seed = rand.Uint64()
	}
	y, err := openYard(ctx, o)
	if err != nil {
		return err
	}
	return errors.Join(s.run(y), y.close())
}

func (s Soak) run(y *Yard) error {
	y.report("seed %d", s.Seed)
	if err := y.startServer(); err != nil {
		return err
	}
	for range 2 {
		if err := y.startGateway(); err != nil {
			return err
		}
	}
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
	faults := &faults{yard: y, workers: workers, dice: rand.New(rand.NewPCG(s.Seed, soakOpen)), counts: map[string]int{}}
	faultErr := faults.run(s.Length)
	close(over)
	users.Wait()
	t.write(y)
	y.report("faults: %v", faults.counts)
	return errors.Join(faultErr, t.err())
}

func done(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// soakRun runs a random workflow to its end.
func (y *Yard) soakRun(name string, dice *rand.Rand) outcome {
	d := y.random(name, dice)
	id, err := y.submit(d)
	if err != nil {
		return outcome{broken: err}
	}
	r, err := y.awaitEnd(id)
	if err != nil {
		return outcome{stuck: fmt.Errorf("run %s: %w", id, err)}
	}
	v, err := y.judge(r)
	if err != nil {
		return outcome{broken: err}
	}
	if r.State != "completed" {
		v.lost = append(v.lost, fmt.Errorf("run %s is %s: %s", id, r.State, r.Error))
	}
	if len(r.Tasks) != len(d.Tasks) {
		v.lost = append(v.lost, fmt.Errorf("run %s has %d tasks, not %d", id, len(r.Tasks), len(d.Tasks)))
	}
	return outcome{verdict: v}
}

// random is a workflow of chains and fan-outs, of tasks that take 0.1 to 5 s and
// of which some fail at first.
func (y *Yard) random(name string, dice *rand.Rand) definition {
	d := definition{Name: name, Tasks: map[string]taskSpec{}}
	var before []string
	for layer := range 1 + dice.IntN(4) {
		var names []string
		for i := range 1 + dice.IntN(5) {
			j := job{ticks: 1 + dice.IntN(4), tick: 0.1, after: before}
			switch dice.IntN(10) {
			case 0:
				j.ticks, j.tick = 10, 0.5
			case 1:
				j.fails = 1 + dice.IntN(2)
			case 2:
				j.tree = true
			}
			name := fmt.Sprintf("l%d-%d", layer, i)
			names = append(names, name)
			d.Tasks[name] = y.task(j)
		}
		before = names
	}
	// Faults spend attempts too.
	for _, t := range d.Tasks {
		t.Retry["maxRetries"] = 50
	}
	return d
}
