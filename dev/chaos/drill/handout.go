package drill

// stopGateways freezes each of two gateways in turn while it hands out tasks, so that the owner of the placement queue is
// among them, and kills each likewise. The other one hands out the rest; what the frozen one says when it thaws
// does not count.
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

// handedOut is how many tasks are to be handed out, and begun how many have started when that is interrupted.
const handedOut, begun = 60, 5

// handOut interrupts whoever hands out the tasks of a run, and mends it when all of them have started.
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
