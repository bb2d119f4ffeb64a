package drill

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"switchyard/dev/processes"
)

// lostCode is the exit code of a session whose connection was lost.
const lostCode = 255

// forward is a command that forwards a local port to a machine.
type forward struct {
	*processes.Process
	address string
}

// openSession starts a program in a machine that prints lines until it is ended.
func (s *sessionDrill) openSession(m *machine) (err error) {
	m.session, err = s.startCommand("exec", s.run, m.task, "--", "sh", "-c", "n=0; while :; do n=$((n + 1)); echo line $n; sleep 0.1; done")
	if err != nil {
		return err
	}
	_, err = m.session.Field(s.cluster.ctx, "line 1")
	return err
}

// openForward forwards a local port to a machine.
func (s *sessionDrill) openForward(m *machine) error {
	p, err := s.startCommand("port-forward", s.run, m.task, "0:"+strconv.Itoa(machinePort))
	if err != nil {
		return err
	}
	line, err := p.Field(s.cluster.ctx, "127.0.0.1:")
	if err != nil {
		return err
	}
	port, _, _ := strings.Cut(line, " ")
	s.forward = &forward{p, net.JoinHostPort("127.0.0.1", port)}
	return s.checkForward()
}

// startCommand starts a `runs` command as a member of the cluster.
func (s *sessionDrill) startCommand(args ...string) (*processes.Process, error) {
	y := s.cluster
	s.opened++
	return y.startProcess(fmt.Sprintf("session-%d", s.opened), append(y.env(), "SWITCHYARD_GATEWAY="+y.gateways[0]), y.Binary, append([]string{"runs"}, args...)...)
}

// checkForward waits until the forwarded port answers.
func (s *sessionDrill) checkForward() error {
	var last error
	err := s.cluster.eventually("the port that is forwarded answers", func() (bool, error) {
		if s.forward.HasEnded() {
			return false, fmt.Errorf("the command that forwards a port has ended with %d: %s", s.forward.ExitCode(), s.forward.LastWords())
		}
		last = askEcho(s.forward.address)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%w (%w)", err, last)
	}
	return nil
}

// echoTimeout bounds one exchange with the program behind a port.
const echoTimeout = 10 * time.Second

// askEcho checks that an address echoes what is sent to it.
func askEcho(address string) error {
	c, err := net.DialTimeout("tcp", address, echoTimeout)
	if err != nil {
		return err
	}
	defer c.Close()
	const question = "are you there?\n"
	if err := errors.Join(c.SetDeadline(time.Now().Add(echoTimeout)), sendString(c, question)); err != nil {
		return err
	}
	switch got, err := bufio.NewReader(c).ReadString('\n'); {
	case err != nil:
		return err
	case got != question:
		return fmt.Errorf("%q came back", got)
	}
	return nil
}

func sendString(w io.Writer, text string) error {
	_, err := io.WriteString(w, text)
	return err
}

// renewSessions checks that each session either continues or has ended with a message, and replaces the ended ones.
func (s *sessionDrill) renewSessions() error {
	for _, m := range s.machines {
		before, err := os.Stat(string(m.session.Stdout))
		if err != nil {
			return err
		}
		err = s.cluster.eventually("the session with "+m.task+" continues, or has ended", func() (bool, error) {
			now, err := os.Stat(string(m.session.Stdout))
			return m.session.HasEnded() || err == nil && now.Size() > before.Size(), err
		})
		if err != nil {
			return err
		}
		if !m.session.HasEnded() {
			s.continued++
			continue
		}
		s.ended++
		if err := checkLost(m.session); err != nil {
			return err
		}
		if err := s.openSession(m); err != nil {
			return err
		}
	}
	return nil
}

// checkLost checks the exit code and the message of a lost session.
func checkLost(p *processes.Process) error {
	if code, said := p.ExitCode(), p.LastWords(); code != lostCode || said == "" {
		return fmt.Errorf("%s, which was lost, has ended with %d and the message %q", p.Name, code, said)
	}
	return nil
}

// awaitSessionsEnd waits until the sessions of ended machines have ended too.
func (s *sessionDrill) awaitSessionsEnd() error {
	sessions := []*processes.Process{s.forward.Process}
	for _, m := range s.machines {
		sessions = append(sessions, m.session)
	}
	for _, p := range sessions {
		if err := s.cluster.eventually(p.Name+" ends with its machine", func() (bool, error) { return p.HasEnded(), nil }); err != nil {
			return err
		}
		if p != s.forward.Process && p.ExitCode() == 0 {
			return fmt.Errorf("%s, whose program was killed, has ended with 0", p.Name)
		}
	}
	return nil
}
