package drill

import (
	"context"
	"errors"
	"fmt"
)

// Scenario breaks a cluster in one way.
type Scenario struct {
	Name string
	// Says describes what is broken and what must still hold.
	Says string
	run  func(*Cluster) error
	// patient runs the scenario with time-outs so long that short interruptions must go unnoticed.
	patient bool
}

// Scenarios returns all scenarios, in the order of the README.
func Scenarios() []Scenario {
	return []Scenario{
		{Name: "kill-worker", Says: "kill -9 of a worker with starting and running tasks", run: killWorker},
		{Name: "stop-worker", Says: "SIGSTOP of a worker, then SIGCONT", run: stopWorker},
		{Name: "cut-long", Says: "a long cut between worker and Temporal, and back", run: cutLong},
		{Name: "kill-gateway", Says: "kill -9 and restart of the only gateway", run: killGateway, patient: true},
		{Name: "kill-server", Says: "kill -9 and restart of dev --db, the embedded server with its gateway", run: killServer, patient: true},
		{Name: "cancel-race", Says: "cancel while tasks complete", run: cancelRace, patient: true},
		{Name: "old-claim", Says: "a report of an older claim arrives when a newer one has started", run: oldClaim},
		{Name: "drain", Says: "drains under load", run: drains, patient: true},
		{Name: "kill-fanout", Says: "kill -9 of a worker, the gateway and the server in a large fan-out", run: killFanOut},
		{Name: "kill-retry", Says: "kill -9 of the gateway while a run is retried", run: killRetry, patient: true},
		{Name: "kill-engine", Says: "kill -9 and restart of worker and container engine in any order", run: killEngine},
		{Name: "kill-sessions", Says: "kill -9 and restart of worker, gateway, server and engine under open sessions with machines", run: killSessions},
		{Name: "store-away", Says: "the store is away while runs are at every stage", run: storeAway, patient: true},
		{Name: "store-errors", Says: "the store answers with errors while runs are at every stage", run: storeErrors, patient: true},
		{Name: "store-slow", Says: "the store answers after 20 s while runs are at every stage", run: storeSlow, patient: true},
		{Name: "store-mounts", Says: "the file system of the store is full, and then gone, while runs end", run: storeMounts, patient: true},
		{Name: "slow-readers", Says: "clients follow a large log at 1 KiB/s", run: slowReaders, patient: true},
		{Name: "lost-slot", Says: "kill -9 and restart of a worker whose places are all taken", run: lostSlot},
		{Name: "kill-final", Says: "tasks are killed whose node cannot be reached, and the control process dies", run: killFinal},
		{Name: "stop-gateways", Says: "SIGSTOP and kill -9 of each of two gateways while tasks are handed out", run: stopGateways, patient: true},
		{Name: "old-attempts", Says: "Temporal is stopped for 5 s, 30 s and 5 min under tasks of 1 s, 6 min and 40 min; in a tenth of the time with -scale fast", run: oldAttempts},
		{Name: "grown-leases", Says: "a worker with tasks of 7 min is cut off while their runs continue as new, are terminated, and are retried", run: grownLeases},
		{Name: "restored-database", Says: "Temporal is killed and starts on a copy of its database from before a lease was raised", run: restoredDatabase},
		{Name: "finally", Says: "kill -9 of the worker, and of dev --db, at every point of runs with finally", run: killFinally},
		{Name: "dead-listener", Says: "a worker whose heartbeat arrives and whose polls for tasks hang", run: deadListener, patient: true},
	}
}

// ScenarioNamed returns the scenario of that name.
func ScenarioNamed(name string) (Scenario, error) {
	for _, s := range Scenarios() {
		if s.Name == name {
			return s, nil
		}
	}
	return Scenario{}, fmt.Errorf("there is no scenario %q", name)
}

// Run runs the scenario in a cluster of its own.
func (s Scenario) Run(ctx context.Context, o Options) error {
	if s.patient {
		o.Scale = o.Scale.patient()
	}
	y, err := openCluster(ctx, o)
	if err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	if err := errors.Join(s.run(y), y.close()); err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	return nil
}
