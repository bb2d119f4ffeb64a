package cli

import (
	"io"
	"net"
	"regexp"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"switchyard/cli/exit"
	v1 "switchyard/proto/switchyard/v1"
)

// running sets up a run whose task build runs until end is called.
func running(f *fakeGateway) (end func(state string)) {
	nightly(f)
	f.run.State, f.run.Tasks["build"].State = v1.RunRunning, v1.TaskRunning
	f.untilCancel = true
	last := &v1.Run{Id: fakeRun, State: v1.RunRunning, Tasks: map[string]*v1.Task{"build": {State: v1.TaskCompleted}}}
	f.messages = []*v1.WatchRunResponse{{Run: &v1.Run{Id: fakeRun, State: v1.RunRunning, Tasks: map[string]*v1.Task{"build": {State: v1.TaskRunning}}}}, {Run: last}}
	return func(state string) {
		last.Tasks["build"].State = state
		close(f.cancel)
	}
}

var listening = regexp.MustCompile(`(127\.0\.0\.1:\d+) -> (\d+)\n`)

// addresses waits until a command listens on n ports, and returns their addresses.
func addresses(t *testing.T, c *command, n int) []string {
	t.Helper()
	for {
		if found := listening.FindAllStringSubmatch(c.stdout.String(), -1); len(found) == n {
			var all []string
			for _, one := range found {
				all = append(all, one[1])
			}
			return all
		}
		select {
		case code := <-c.code:
			t.Fatalf("code %d, %s", code, c.stderr)
		case <-time.After(time.Millisecond):
		}
	}
}

// exchange sends text, closes the write side, and returns the reply.
func exchange(t *testing.T, address, text string) (string, error) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil { // an immediate reset fails the dial
		return "", err
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, text); err != nil {
		return "", err
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		return "", err
	}
	back, err := io.ReadAll(conn)
	return string(back), err
}

func TestPortForwardJoinsConnections(t *testing.T) {
	f := fake(t)
	end := running(f)
	c := start(t, nil, "", "runs", "port-forward", "--gateway", f.url, "night", "build", "0:80", "0:81")
	at := addresses(t, c, 2)
	// The reply comes after the client has closed its write side.
	if got, err := exchange(t, at[0], "hello"); got != "HELLO" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := exchange(t, at[1], ""); err == nil {
		t.Errorf("a refused connection ends like an answer: %q", got)
	}
	c.stderr.await(t, "port 81: nothing listens on port 81\n")
	// A lost connection to the gateway is dialled again.
	f.sessions.cut()
	for got := ""; got != "AGAIN"; {
		got, _ = exchange(t, at[0], "again")
	}
	end(v1.TaskCompleted)
	c.ends(t, exit.CodeDone, "task build of run nightly-4g5h6jkm has ended: it is completed\n")
}

func TestPortForwardEndsWithItsTaskOrAnInterrupt(t *testing.T) {
	f := fake(t)
	end := running(f)
	c := start(t, nil, "", "runs", "port-forward", "--gateway", f.url, "night", "build", "0:80")
	addresses(t, c, 1)
	end(v1.TaskFailed)
	c.ends(t, exit.CodeNotDone, "it is failed\n")
	f = fake(t)
	running(f)
	c = start(t, nil, "", "runs", "port-forward", "--gateway", f.url, "night", "0:80")
	at := addresses(t, c, 1)
	conn, err := net.Dial("tcp", at[0])
	must(t, err)
	defer conn.Close()
	c.interrupt(exit.ErrInterrupted)
	c.ends(t, exit.CodeInterrupted, "")
}

func TestPortForwardSurvivesAnAwayMachineAndEndsWithALostOne(t *testing.T) {
	f := fake(t)
	running(f)
	f.run.Tasks["build"].State, f.run.Tasks["build"].Type, f.run.Tasks["build"].Notice = v1.TaskLost, v1.TypeVPS, "nothing comes from node a"
	lost := &v1.Run{Id: fakeRun, State: v1.RunRunning, Tasks: map[string]*v1.Task{"build": {State: v1.TaskLost, Type: v1.TypeVPS}}}
	f.messages = []*v1.WatchRunResponse{{Run: proto.CloneOf(f.run)}, {Run: lost}}
	c := start(t, nil, "", "runs", "port-forward", "--gateway", f.url, "night", "build", "0:80")
	addresses(t, c, 1)
	close(f.cancel)
	c.ends(t, exit.CodeNotDone, "task build of run nightly-4g5h6jkm has ended: it is lost\n")
}

func TestPortForwardRefuses(t *testing.T) {
	f := fake(t)
	nightly(f)
	f.run.State = v1.RunRunning
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	for _, test := range []struct {
		args []string
		code int
		said string
	}{
		{[]string{"night", "buidl", "80"}, exit.CodeUsage, `run nightly-4g5h6jkm has no task "buidl"`},
		{[]string{"night", "build", "80"}, exit.CodeNotDone, "task build of run nightly-4g5h6jkm has ended: it is dead_letter"},
		{[]string{"night", "build"}, exit.CodeUsage, "a port is missing"},
		{[]string{"night", "build", "80x"}, exit.CodeUsage, `"80x" is not a port`},
		{[]string{"night", "build", "1:2:3:4"}, exit.CodeUsage, "is not a numeric address"},
		{[]string{"night", "70000"}, exit.CodeUsage, `"70000" is not a port`},
		{[]string{"night", "0:80", port + ":80"}, exit.CodeNotDone, "listen on 127.0.0.1:" + port},
	} {
		runWith(t, nil, "", append([]string{"runs", "port-forward", "--gateway", f.url}, test.args...)...).ends(t, test.code, test.said)
	}
}

func TestSSHForwardsPorts(t *testing.T) {
	f := fake(t)
	c := startOnTerminal(t, "ssh", "--gateway", f.url, "night", "-L", "0:80", "-L", "0:81")
	c.shown.await(t, "ready")
	c.stderr.await(t, "-> 81\n")
	found := listening.FindAllStringSubmatch(c.stderr.String(), -1)
	if got, err := exchange(t, found[0][1], "hello"); got != "HELLO" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	_, _ = exchange(t, found[1][1], "")
	c.shown.await(t, "\r\nport 81: nothing listens on port 81\r\n")
	c.typeKeys(t, "exit\r")
	c.ends(t, 7, "")
}
