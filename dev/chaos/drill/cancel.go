package drill

import (
	"errors"
	"fmt"
	"sync"
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

// races is the number of runs that are cancelled while their tasks complete.
const races = 8

// cancelRace cancels runs at the moment when their only task ends. Each run has one outcome, which every caller
// receives and which never changes.
func cancelRace(y *Cluster) error {
	if err := y.start("a", "b"); err != nil {
		return err
	}
	outcomes := make([]string, races)
	errs := make([]error, races)
	var racing sync.WaitGroup
	for i := range races {
		racing.Go(func() { outcomes[i], errs[i] = y.race(i) })
	}
	racing.Wait()
	counts := map[string]int{}
	for _, outcome := range outcomes {
		counts[outcome]++
	}
	y.report("cancel against completion: %d completed, %d cancelled", counts[v1.RunCompleted], counts[v1.RunCancelled])
	return errors.Join(errs...)
}

// race opens the gate of a task and cancels its run slightly before or after that.
func (y *Cluster) race(i int) (outcome string, err error) {
	name := fmt.Sprintf("race-%d", i)
	gate := y.gate(name)
	id, _, err := y.runOn("", y.crowd(name, 1, job{gate: gate, tick: 0.01}))
	if err != nil {
		return "", err
	}
	opened := make(chan error, 1)
	time.AfterFunc(time.Duration(i)*20*time.Millisecond, func() { opened <- y.open(gate) })
	cancelled, err := y.command(0, "runs", "cancel", id)
	if err = errors.Join(err, <-opened); err != nil {
		return "", err
	}
	watched, err := y.command(0, "runs", "watch", id)
	if err != nil {
		return "", err
	}
	r, err := y.awaitEnd(id)
	if err != nil {
		return "", err
	}
	switch {
	case r.State != v1.RunCompleted && r.State != v1.RunCancelled:
		err = fmt.Errorf("run %s is %s: %s", id, r.State, r.Error)
	case r.State == v1.RunCompleted && r.Tasks["t0"].State != r.State:
		err = fmt.Errorf("run %s is %s and its task %s", id, r.State, r.Tasks["t0"].State)
	case (r.State == v1.RunCompleted) != (watched.code == 0):
		err = fmt.Errorf("run %s is %s and watch exits with %d", id, r.State, watched.code)
	case r.State == v1.RunCancelled && cancelled.code != 0:
		err = fmt.Errorf("run %s was cancelled and cancel exits with %d: %s", id, cancelled.code, cancelled.stderr)
	}
	v, judgeErr := y.judge(r)
	if judgeErr != nil {
		return "", errors.Join(err, judgeErr)
	}
	return r.State, errors.Join(err, v.err(), y.unchanged(r))
}
