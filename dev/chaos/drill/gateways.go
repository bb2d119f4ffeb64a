package drill

import (
	"fmt"
	"time"
)

// takeover is how long another control process may take until it places tasks again.
const takeover = 10 * time.Second

// killGateways kills two gateways one after the other, so that one of them is the leader. The other gateway
// must soon place tasks, and running tasks must not be affected.
func killGateways(y *Cluster) error {
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
	long := y.crowd("long", 4, job{gate: gate})
	id, tasks, err := y.runOn("", long)
	if err != nil {
		return err
	}
	for victim := range y.gateways {
		killed := time.Now()
		if err := y.kill(gatewayName(victim)); err != nil {
			return err
		}
		short, err := y.submit(y.crowd(fmt.Sprintf("short-%d", victim), 2, job{ticks: 1}))
		if err != nil {
			return err
		}
		r, err := y.finished(short)
		if err != nil {
			return err
		}
		executions, err := y.executions(r.ID, "t0")
		if err != nil {
			return err
		}
		took := executions[0].start.Sub(killed)
		y.report("kill of gateway %d: placed again %.1f s later", victim, took.Seconds())
		if took > takeover+y.Scale.Slack {
			return fmt.Errorf("after the kill of gateway %d it took %s until a task was placed", victim, took)
		}
		if err := y.restartGateway(victim); err != nil {
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
