package drill

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// containersAtOnce is the number of running containers when worker and engine are killed.
const containersAtOnce = 5

// killEngine kills the worker and the engine of running containers, in any order and at any moment, and restarts them
// in any order.
func killEngine(y *Cluster) error {
	if err := y.startContained("a"); err != nil {
		return err
	}
	seed := uint64(time.Now().UnixNano())
	dice := rand.New(rand.NewPCG(seed, 0))
	repeated, attempts := 0, 0
	for round := range y.Scale.Rounds {
		r, again, err := y.killRound(dice)
		if err != nil {
			return fmt.Errorf("round %d (seed %d): %w", round+1, seed, err)
		}
		repeated += again
		for _, task := range r.Tasks {
			attempts += task.Attempt
		}
		if (round+1)%10 == 0 || round+1 == y.Scale.Rounds {
			y.report("%d rounds of %d containers: %d attempts were repeated, work was done again after a kill %d times", round+1, containersAtOnce, attempts, repeated)
		}
	}
	return nil
}

// killRound starts containers and kills the processes that they depend on.
func (y *Cluster) killRound(dice *rand.Rand) (*run, int, error) {
	ticks := make([]int, containersAtOnce)
	for i := range ticks {
		ticks[i] = 5 + dice.IntN(40)
	}
	d := contained("orphans", ticks...)
	id, err := y.submit(d)
	if err != nil {
		return nil, 0, err
	}
	if err := y.awaitContained(id, namesOf(d), dice.IntN(containersAtOnce+1)); err != nil {
		return nil, 0, err
	}
	any := func(most time.Duration) time.Duration { return time.Duration(dice.Int64N(int64(most))) }
	if err := y.pause(any(2 * time.Second)); err != nil {
		return nil, 0, err
	}
	parts := []string{"a", engineName}
	dice.Shuffle(2, func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	for _, part := range parts {
		if err := y.kill(part); err != nil {
			return nil, 0, err
		}
		if err := y.pause(any(time.Second)); err != nil {
			return nil, 0, err
		}
	}
	dice.Shuffle(2, func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	for _, part := range parts {
		if err := y.pause(any(y.Scale.Heartbeat)); err != nil {
			return nil, 0, err
		}
		if part == engineName {
			err = y.engine.start(y.ctx)
		} else {
			err = y.startContainerWorker(part)
		}
		if err != nil {
			return nil, 0, err
		}
	}
	return y.containedFinished(id)
}
