package drill

import (
	"fmt"
	"time"
)

// takeover is how long another control process may take until it places tasks again.
const takeover = 10 * time.Second

// handedOut is the number of tasks to dispatch, and begun the number that have started when the dispatch is
// interrupted.
const handedOut, begun = 60, 5

// stopGateways freezes each of two gateways in turn while it dispatches tasks, so that one of them is the leader, and
// then kills each in the same way. The other one dispatches the rest. Calls of the frozen gateway after it thaws have no
// effect, and running tasks are not affected.
func stopGateways(y *Cluster) error {
	if err := y.startServer(); err != nil {
		return err
	}
	for range 2 {
		if err := y.startGateway(); err != nil {
			return err
		}
	}
	if err := y.startWorkers("a", "b"); err != nil {
		return err
	}
	gate := y.gate("work")
	id, tasks, err := y.runOn("", y.crowd("long", 4, job{gate: gate}))
	if err != nil {
		return err
	}
	for victim := range y.gateways {
		name := gatewayName(victim)
		if err := y.handOut(name, func() error { return y.freeze(name) }, func() error { return y.thaw(name) }); err != nil {
			return err
		}
		if err := y.handOut(name, func() error { return y.killAndPlace(name) }, func() error { return y.restartGateway(victim) }); err != nil {
			return err
		}
	}
	if err := y.untouched(id, tasks); err != nil {
		return err
	}
	if err := y.open(gate); err != nil {
		return err
	}
	if _, err = y.finished(id); err != nil {
		return err
	}
	return y.untouched(id, tasks)
}

// handOut interrupts the dispatch of a run's tasks, and mends it when all of them have started.
func (y *Cluster) handOut(name string, interrupt, mend func() error) error {
	d := y.crowd("out-"+name, handedOut, job{ticks: 3})
	id, err := y.submit(d)
	if err != nil {
		return err
	}
	if err := y.awaitStarted(id, namesOf(d), "", begun); err != nil {
		return err
	}
	if err := interrupt(); err != nil {
		return err
	}
	if err := y.awaitStarted(id, namesOf(d), "", handedOut); err != nil {
		return err
	}
	if err := mend(); err != nil {
		return err
	}
	_, err = y.finished(id)
	return err
}

// killAndPlace kills a gateway, and checks that the other one soon places the task of another run.
func (y *Cluster) killAndPlace(name string) error {
	killed := time.Now()
	if err := y.kill(name); err != nil {
		return err
	}
	id, err := y.submit(y.crowd("short-"+name, 1, job{ticks: 1}))
	if err != nil {
		return err
	}
	if err := y.awaitStarted(id, []string{"t0"}, "", 1); err != nil {
		return err
	}
	executions, err := y.executions(id, "t0")
	if err != nil {
		return err
	}
	took := executions[0].start.Sub(killed)
	y.report("kill of %s: placed again %.1f s later", name, took.Seconds())
	if took > takeover+y.Scale.Slack {
		err = fmt.Errorf("after the kill of %s it took %s until a task was placed", name, took)
	}
	return err
}

// killGateway kills the only gateway. The placement queue and, for a moment, the workers' store are then unavailable.
func killGateway(y *Cluster) error {
	if err := y.start("a", "b"); err != nil {
		return err
	}
	gate := y.gate("work")
	d := y.crowd("long", 4, job{gate: gate})
	tasks := namesOf(d)
	for i, before := range tasks {
		d.Tasks[fmt.Sprintf("after-%d", i)] = y.task(job{ticks: 1, after: []string{before}})
	}
	id, err := y.submit(d)
	if err != nil {
		return err
	}
	if err := y.awaitStarted(id, tasks, "", len(tasks)); err != nil {
		return err
	}
	if err := y.kill(gatewayName(0)); err != nil {
		return err
	}
	if err := y.open(gate); err != nil { // the tasks end while no control process runs
		return err
	}
	if err := y.pause(y.Scale.Short); err != nil {
		return err
	}
	if err := y.restartGateway(0); err != nil {
		return err
	}
	if _, err := y.finished(id); err != nil {
		return err
	}
	return y.untouched(id, namesOf(d))
}

// killServer kills the process of the embedded server with all its parts, and starts it again on the same database.
func killServer(y *Cluster) error {
	if err := y.startDev(); err != nil {
		return err
	}
	if err := y.startWorkers("a", "b"); err != nil {
		return err
	}
	gate := y.gate("work")
	d := y.crowd("long", 4, job{gate: gate})
	tasks := namesOf(d)
	d.Tasks["after"] = y.task(job{ticks: 1, after: tasks})
	id, err := y.submit(d)
	if err != nil {
		return err
	}
	if err := y.awaitStarted(id, tasks, "", len(tasks)); err != nil {
		return err
	}
	if err := y.kill(devName); err != nil {
		return err
	}
	if err := y.pause(y.Scale.Short); err != nil {
		return err
	}
	if err := y.restartDev(); err != nil {
		return err
	}
	if err := y.open(gate); err != nil {
		return err
	}
	if err := y.awaitNodes("a", "b"); err != nil {
		return err
	}
	if _, err = y.finished(id); err != nil {
		return err
	}
	return y.untouched(id, tasks)
}
