package drill

// stopGateways freezes each of two gateways in turn while it dispatches tasks, so that one of them is the leader, and
// then kills each in the same way. The other one dispatches the rest. Calls of the frozen gateway after it thaws have no
// effect.
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
	for victim := range y.gateways {
		name := gatewayName(victim)
		if err := y.handOut(name, func() error { return y.freeze(name) }, func() error { return y.thaw(name) }); err != nil {
			return err
		}
		if err := y.handOut(name, func() error { return y.kill(name) }, func() error { return y.restartGateway(victim) }); err != nil {
			return err
		}
	}
	return nil
}

// handedOut is the number of tasks to dispatch, and begun the number that have started when the dispatch is
// interrupted.
const handedOut, begun = 60, 5

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
