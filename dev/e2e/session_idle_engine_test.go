//go:build engines

package e2e

import (
	"bytes"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/dev/chaos/drill"
	"switchyard/dev/processes"
	"switchyard/dev/sessiontest"
	"switchyard/dev/testneeds"
)

// idleProxy forwards connections to an address, and cuts each that was silent in one direction for a certain time.
type idleProxy struct {
	net.Listener
	target string
	silent time.Duration
	pipes  sync.WaitGroup

	mu   sync.Mutex
	open []net.Conn
	cuts int
}

func startIdleProxy(t *testing.T, target string, silent time.Duration) *idleProxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &idleProxy{Listener: listener, target: target, silent: silent}
	p.pipes.Go(p.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		p.mu.Lock()
		for _, conn := range p.open {
			_ = conn.Close()
		}
		p.mu.Unlock()
		p.pipes.Wait()
	})
	return p
}

func (p *idleProxy) accept() {
	for {
		front, err := p.Accept()
		if err != nil {
			return
		}
		back, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = front.Close()
			continue
		}
		p.mu.Lock()
		p.open = append(p.open, front, back)
		p.mu.Unlock()
		p.pipes.Go(func() { p.pipe(front, back) })
		p.pipes.Go(func() { p.pipe(back, front) })
	}
}

func (p *idleProxy) pipe(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	buffer := make([]byte, 64<<10)
	for {
		_ = from.SetReadDeadline(time.Now().Add(p.silent))
		n, err := from.Read(buffer)
		if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
			p.mu.Lock()
			p.cuts++
			p.mu.Unlock()
		}
		if err != nil {
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// TestLongSilenceOfSessions puts proxies between client, gateway and node that cut connections after 20 s of silence. A
// session that is idle for longer continues. A link that falls silent during a transfer ends the transfer in bounded
// time.
func TestLongSilenceOfSessions(t *testing.T) {
	testneeds.Long(t)
	t.Parallel()
	s := startDev(t, "--nodes", "0", "--ssh-address", "127.0.0.1:0")
	gateway := strings.TrimPrefix(s.Gateway, "http://")
	idle := startIdleProxy(t, gateway, 20*time.Second)
	cut, err := drill.StartProxy(gateway)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cut.Close)
	startWorker(t, s.Temporal, "http://"+idle.Addr().String(), "idle", "--metrics-address", "none")
	worker := startWorker(t, s.Temporal, "http://"+cut.Address(), "cut", "--metrics-address", "none")
	door := strings.Fields(strings.TrimPrefix(s.Line(s.Stdout, "SSH"), "SSH"))[0]
	client := sessiontest.NewOpenSSH(t, startIdleProxy(t, strings.TrimSuffix(door, ":"), 20*time.Second).Addr().String(), "")
	keys := write(t, client.AuthorizedKey())
	do(t, s.Gateway, 0, "keys", "add", keys)
	id := s.Submit(t, `
name: silence
tasks:
  idle: { type: shell, spec: { command: sleep 100000 }, constraints: { targetNode: idle }, resources: { cores: 0 } }
  cut: { type: shell, spec: { command: sleep 100000 }, constraints: { targetNode: cut }, resources: { cores: 0 } }
`)
	for _, task := range []string{"idle", "cut"} {
		s.AwaitTask(t, id, task, "running")
		processes.Await(t, task+" can be entered", func() bool {
			code, _, _ := run(t, "runs", "exec", id, task, "--gateway", s.Gateway, "--", "true")
			return code == 0
		})
	}
	t.Run("idle", func(t *testing.T) {
		t.Parallel()
		testIdleSessionsContinue(t, "http://"+idle.Addr().String(), id, as(client, "idle."+id))
		idle.mu.Lock()
		defer idle.mu.Unlock()
		t.Logf("the proxy has cut %d other connections", idle.cuts)
	})
	t.Run("cut", func(t *testing.T) {
		t.Parallel()
		testSilentLinkEndsTransfer(t, cut, worker, as(client, "cut."+id))
	})
}

// conversation is a program that answers lines.
type conversation struct {
	name    string
	in      io.Writer
	program *processes.Program
}

func (c *conversation) ask(t *testing.T, question string) {
	t.Helper()
	if _, err := io.WriteString(c.in, question+"\n"); err != nil {
		t.Errorf("%s: %v", c.name, err)
		return
	}
	processes.Await(t, c.name+" answers "+question, func() bool { return strings.Contains(c.program.Stdout.String(), question) })
}

func testIdleSessionsContinue(t *testing.T, gateway, id string, client *sessiontest.OpenSSH) {
	var all []*conversation
	converse := func(name string, cmd *exec.Cmd) {
		t.Helper()
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, &conversation{name, in, processes.StartForTest(t, cmd)})
	}
	converse("runs exec", exec.Command(binary, "runs", "exec", "-i", id, "idle", "--gateway", gateway, "--", "cat"))
	ssh := client.SSH(nil, "cat").Args
	converse("OpenSSH", exec.Command(ssh[0], ssh[1:]...)) // without the time limit of client.SSH
	for _, c := range all {
		c.ask(t, "before")
	}
	time.Sleep(50 * time.Second)
	for _, c := range all {
		c.ask(t, "after")
	}
}

func testSilentLinkEndsTransfer(t *testing.T, cut *drill.Proxy, worker *processes.Program, client *sessiontest.OpenSSH) {
	if _, err := exec.LookPath("rsync"); err != nil {
		testneeds.Missing(t, "rsync is missing")
	}
	blob, target := largeFile(t), t.TempDir()
	before := len(withDescendants(t, worker.Cmd.Process.Pid))
	for program, rate := range map[string][]string{"scp": {"-l", "16000"}, "rsync": {"--bwlimit=2m"}} { // 2 MB/s
		start := func(limits ...string) *exec.Cmd {
			args := client.Copy("scp").Args
			if program == "rsync" {
				ssh := client.SSH(nil).Args
				args = []string{"rsync", "--partial", "--inplace", "-e", strings.Join(ssh[:len(ssh)-1], " ")}
			}
			return exec.Command(args[0], slices.Concat(args[1:], limits, []string{blob, client.Target() + ":" + filepath.Join(target, program)})...)
		}
		cmd := start(rate...)
		var out bytes.Buffer
		cmd.Stderr = &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		processes.Await(t, "a part of the file is there", func() bool { return sizeOfFile(filepath.Join(target, program)) > transferSize/16 })
		cut.Cut()
		began := time.Now()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = cmd.Wait() // the exit code is read from the state
		}()
		select {
		case <-ended:
		case <-time.After(processes.Limit):
			_ = cmd.Process.Kill()
			t.Errorf("%s waits without end for a link that is silent", program)
			<-ended
		}
		t.Logf("%s has ended after %s: %s", program, time.Since(began).Round(time.Second), out.String())
		if code := cmd.ProcessState.ExitCode(); code <= 0 {
			t.Errorf("%s exits with %d: %s", program, code, out.String())
		}
		processes.Await(t, "nothing of it is left on the node", func() bool { return len(withDescendants(t, worker.Cmd.Process.Pid)) <= before })
		cut.Restore()
		processes.Await(t, program+" succeeds when it is repeated", func() bool {
			text, err := start().CombinedOutput()
			if err != nil {
				t.Logf("%s: %v: %s", program, err, text)
			}
			return err == nil
		})
		equalFiles(t, blob, filepath.Join(target, program))
	}
}
