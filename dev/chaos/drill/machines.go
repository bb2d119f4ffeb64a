package drill

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"switchyard/dev/processes"
	v1 "switchyard/proto/switchyard/v1"
)

// A machine runs a program in the background that appends marks to a file: one line each with a counter and the process
// ID. Another program answers on a port.
const (
	machineMarks  = "/marks"
	machinePort   = 7000
	machineScript = `
setsid sh -c 'n=0; while :; do n=$((n + 1)); echo "$n $$" >>/marks; sleep 0.1; done' </dev/null >/dev/null 2>&1 &
setsid nc -ll -p 7000 -e cat </dev/null >/dev/null 2>&1 &`
	// marksScript prints the marks once a new one has been written, or after a time-out.
	marksScript = `
set -- $(wc -l /marks) && before=$1 && i=0
while [ $i -lt 100 ]; do set -- $(wc -l /marks) && [ "$1" -gt "$before" ] && break; i=$((i + 1)); sleep 0.1; done
cat /marks`
)

// machine is a task of type vps.
type machine struct {
	task      string
	container string // ID of its container
	marks     int    // lower bound of the number of marks
	writer    string // ID of the process that writes them
	session   *processes.Process
}

// startMachines starts a run of machines with their programs, and opens sessions with them.
func (s *sessionDrill) startMachines() (err error) {
	y := s.cluster
	d := definition{Name: "desks", Tasks: map[string]taskSpec{}}
	for i := range s.count {
		d.Tasks[fmt.Sprintf("desk%d", i)] = taskSpec{
			Type:      v1.TypeVPS,
			Spec:      map[string]any{"image": engineImage, "pullPolicy": "never", "network": "none"},
			Resources: map[string]any{"cores": 0},
		}
	}
	if s.run, err = y.submit(d); err != nil {
		return err
	}
	s.machines = nil
	for _, task := range namesOf(d) {
		s.machines = append(s.machines, &machine{task: task})
	}
	if err := s.awaitRunning(); err != nil {
		return err
	}
	for _, m := range s.machines {
		if _, err := y.must("runs", "exec", s.run, m.task, "--", "sh", "-c", machineScript); err != nil {
			return err
		}
		if err := s.checkMarks(m); err != nil {
			return err
		}
		if err := s.openSession(m); err != nil {
			return err
		}
	}
	if err := s.openForward(s.machines[0]); err != nil {
		return err
	}
	return s.checkContainers()
}

// awaitRunning waits until each machine runs, in its first attempt.
func (s *sessionDrill) awaitRunning() error {
	y, last := s.cluster, ""
	err := y.eventually("the machines of "+s.run+" run", func() (bool, error) {
		r, err := y.get(s.run)
		if err != nil {
			return false, err
		}
		for _, m := range s.machines {
			t := r.Tasks[m.task]
			if last = fmt.Sprintf("machine %s is %s in attempt %d: %s", m.task, t.State, t.Attempt, t.Error); t.Attempt != 0 || v1.IsRunTerminal(r.State) {
				return false, errors.New(last)
			}
			if t.State != v1.TaskRunning || t.CompletedAt != "" {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("%w (%s)", err, last)
	}
	return nil
}

// checkMarks waits until a new session with a machine works, and checks that its file has every mark of one process,
// which is still writing.
func (s *sessionDrill) checkMarks(m *machine) error {
	y := s.cluster
	var a answer
	err := y.eventually("a session with "+m.task, func() (_ bool, err error) {
		a, err = y.command(0, "runs", "exec", s.run, m.task, "--", "sh", "-c", marksScript)
		return a.code == 0, err
	})
	if err != nil {
		return fmt.Errorf("%w; the last one has ended with %d: %s", err, a.code, a.stderr)
	}
	n := 0
	for line := range strings.Lines(a.stdout) {
		number, writer, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if !strings.HasSuffix(line, "\n") {
			break // an incomplete line, still being written
		}
		if m.writer == "" {
			m.writer = writer
		}
		if n++; number != strconv.Itoa(n) || writer != m.writer {
			return fmt.Errorf("line %d of %s in %s is %q, and process %s writes there", n, machineMarks, m.task, line, m.writer)
		}
	}
	if n <= m.marks {
		return fmt.Errorf("%s in %s had %d lines and has %d", machineMarks, m.task, m.marks, n)
	}
	m.marks = n
	return nil
}

// checkContainers checks that each machine still has only its original container.
func (s *sessionDrill) checkContainers() error {
	found, err := s.cluster.engine.containers(s.run)
	if err != nil {
		return err
	}
	ids := map[string]string{}
	for _, c := range found {
		task := c.Labels["switchyard.task"]
		if ids[task] != "" {
			return fmt.Errorf("machine %s has containers %s and %s", task, ids[task], c.ID)
		}
		if ids[task] = c.ID; c.State != "running" {
			return fmt.Errorf("the container of machine %s is %s", task, c.State)
		}
	}
	for _, m := range s.machines {
		if id := ids[m.task]; id == "" || m.container != "" && m.container != id {
			return fmt.Errorf("machine %s has container %q, and had %q", m.task, id, m.container)
		}
		m.container = ids[m.task]
	}
	return nil
}

// awaitMachinesEnd waits until machines whose containers the engine has ended are reported as ended, and until their
// sessions have ended.
func (s *sessionDrill) awaitMachinesEnd() error {
	r, err := s.cluster.awaitEnd(s.run)
	if err != nil {
		return err
	}
	for _, m := range s.machines {
		if t := r.Tasks[m.task]; t.State != v1.TaskFailed || t.Attempt != 0 || t.Error == "" || t.CompletedAt == "" {
			return fmt.Errorf("machine %s, whose container was ended by the engine, is %s in attempt %d: %s", m.task, t.State, t.Attempt, t.Error)
		}
	}
	return s.awaitNothing()
}

// stopMachines stops each machine and checks that each ends as a success.
func (s *sessionDrill) stopMachines() error {
	y := s.cluster
	for _, m := range s.machines {
		if _, err := y.must("vps", "stop", s.run, m.task); err != nil {
			return err
		}
	}
	r, err := y.awaitEnd(s.run)
	if err != nil {
		return err
	}
	if r.State != v1.RunCompleted {
		return fmt.Errorf("run %s is %s: %s", s.run, r.State, r.Error)
	}
	for _, m := range s.machines {
		if t := r.Tasks[m.task]; t.State != v1.TaskStopped || t.Attempt != 0 {
			return fmt.Errorf("machine %s is %s in attempt %d: %s", m.task, t.State, t.Attempt, t.Error)
		}
	}
	return s.awaitNothing()
}

// awaitNothing waits until nothing of the machines is left in the engine and their sessions have ended.
func (s *sessionDrill) awaitNothing() error {
	y := s.cluster
	err := y.eventually("nothing is left of the machines of "+s.run, func() (bool, error) {
		left, err := y.engine.containers(s.run)
		return err == nil && len(left) == 0 && len(processesWith("SWITCHYARD_RUN_ID="+s.run)) == 0, nil
	})
	if err != nil {
		return err
	}
	return s.awaitSessionsEnd()
}
