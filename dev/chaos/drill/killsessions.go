package drill

import (
	"fmt"
	"math/rand/v2"
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

// machinesAtOnce is the number of running machines when their dependencies are killed.
const machinesAtOnce = 3

// killSessions kills each part that machines and their sessions depend on, in a random order, and restarts it.
// Afterwards, machines either still have their files and processes, or the engine has ended them and they are reported
// as ended.
func killSessions(y *Cluster) error {
	if err := y.startContained("a"); err != nil {
		return err
	}
	seed := uint64(time.Now().UnixNano())
	dice := rand.New(rand.NewPCG(seed, 0))
	s := &sessionDrill{cluster: y, count: machinesAtOnce}
	if err := s.startMachines(); err != nil {
		return err
	}
	for round := range y.Scale.SessionRounds {
		faults := []sessionFault{
			{"the worker", func() error { return y.revive("a") }},
			{"the worker, until it is lost", s.loseWorker},
			{"the gateway", func() error { return y.replace(gatewayName(0), func() error { return y.restartGateway(0) }) }},
			{"the Temporal server", func() error { return y.replace(serverName, y.restartServer) }},
			{"the engine, which leaves containers alone", func() error { return s.killEngine(true) }},
		}
		if round%2 == 1 {
			faults[len(faults)-1] = sessionFault{"the engine, which ends its containers when it is back", func() error { return s.killEngine(false) }}
		}
		dice.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
		for _, f := range faults {
			if err := s.survive(f); err != nil {
				return fmt.Errorf("round %d (seed %d), kill of %s: %w", round+1, seed, f.part, err)
			}
		}
	}
	y.report("sessions worked again at most %.1f s after the part was back; %d continued, %d ended with a message", s.slowest.Seconds(), s.continued, s.ended)
	return s.stopMachines()
}

// revive kills the worker and starts it again.
func (y *Cluster) revive(worker string) error {
	if err := y.kill(worker); err != nil {
		return err
	}
	if err := y.startContainerWorker(worker); err != nil {
		return err
	}
	return y.awaitNodes(worker)
}

// replace kills a member and restarts it at once.
func (y *Cluster) replace(name string, start func() error) error {
	if err := y.kill(name); err != nil {
		return err
	}
	return start()
}

// sessionFault kills a part and starts it again.
type sessionFault struct {
	part string
	kill func() error
}

// sessionDrill holds the machines of a cluster and the sessions with them.
type sessionDrill struct {
	cluster  *Cluster
	count    int // number of machines
	run      string
	machines []*machine
	forward  *forward
	// isEnded is set by a fault that ends the machines.
	isEnded bool

	opened           int // number of opened sessions
	continued, ended int // number of sessions that continued after a fault, or ended
	slowest          time.Duration
}

// survive applies a fault, and checks the machines and sessions afterwards.
func (s *sessionDrill) survive(f sessionFault) error {
	s.isEnded = false
	if err := f.kill(); err != nil {
		return err
	}
	if s.isEnded {
		if err := s.awaitMachinesEnd(); err != nil {
			return err
		}
		return s.startMachines()
	}
	return s.checkMachines()
}

// checkMachines checks that the machines and new sessions with them work, and what has become of the open sessions.
func (s *sessionDrill) checkMachines() error {
	back := time.Now()
	for _, m := range s.machines {
		if err := s.checkMarks(m); err != nil {
			return err
		}
	}
	if err := s.checkForward(); err != nil {
		return err
	}
	s.slowest = max(s.slowest, time.Since(back))
	if err := s.awaitRunning(); err != nil {
		return err
	}
	if err := s.checkContainers(); err != nil {
		return err
	}
	return s.renewSessions()
}

// loseWorker keeps the worker away until its machines are lost.
func (s *sessionDrill) loseWorker() error {
	y := s.cluster
	if err := y.kill("a"); err != nil {
		return err
	}
	err := y.eventually("the machines of "+s.run+" are lost", func() (bool, error) {
		r, err := y.get(s.run)
		if err != nil {
			return false, err
		}
		for _, m := range s.machines {
			if t := r.Tasks[m.task]; t.State != v1.TaskLost || t.CompletedAt == "" {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	return y.revive("a")
}

// killEngine kills the engine and restarts it. With liveRestore, the engine continues with the running containers.
func (s *sessionDrill) killEngine(liveRestore bool) error {
	y := s.cluster
	s.isEnded = !liveRestore
	y.engine.liveRestore = liveRestore
	return y.replace(engineName, func() error { return y.engine.start(y.ctx) })
}
