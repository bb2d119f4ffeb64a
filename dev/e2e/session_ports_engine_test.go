//go:build engines

package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"switchyard/dev/processes"
)

// testNodeListensNowhere checks that a worker and its helpers listen on no port while sessions, forwarded ports and
// OpenSSH connections are open.
func testNodeListensNowhere(t *testing.T, f *sessionFleet) {
	if got := listeners(t, f.gateways[0].Cmd.Process.Pid); len(got) < 2 {
		t.Fatalf("a gateway listens on %v", got)
	}
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	go func() {
		for {
			conn, err := echo.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	_, port, _ := net.SplitHostPort(echo.Addr().String())
	session := f.start(t, "ann", 0, "runs", "exec", f.id, "work", "--", "sh", "-c", "echo open; exec sleep 1000")
	session.Line(session.Stdout, "open")
	forward := f.start(t, "ann", 0, "runs", "port-forward", f.id, "work", "0:"+port)
	conn, err := net.Dial("tcp", strings.Fields(forward.Line(forward.Stdout, "-> "+port))[0])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(processes.Limit))
	_, _ = io.WriteString(conn, "echo\n")
	if line, err := bufio.NewReader(conn).ReadString('\n'); line != "echo\n" {
		t.Fatalf("the forwarded port answers %q, %v", line, err)
	}
	remote := as(f.ann, "box."+f.id).SSH([]string{"-o", "ExitOnForwardFailure=yes", "-R", "7100:127.0.0.1:" + port}, "echo open; exec sleep 1000")
	stdout, err := remote.StdoutPipe()
	if err == nil {
		err = remote.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = remote.Process.Kill()
		_ = remote.Wait()
	}()
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "open\n" {
		t.Fatalf("ssh -R prints %q, %v", line, err)
	}
	if code, stdout, stderr := f.inside(t, 0, f.id, "box", "echo through | nc 127.0.0.1 7100 | head -n 1"); code != 0 || stdout != "through\n" {
		t.Errorf("the port in the machine: exit code %d, %q, %s", code, stdout, stderr)
	}
	for _, pid := range withDescendants(t, f.worker.Cmd.Process.Pid) {
		if got := listeners(t, pid); len(got) > 0 {
			text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			t.Errorf("%q listens on %v", text, got)
		}
	}
}

// listeners returns the addresses, in the form of /proc, on which a process accepts connections or receives datagrams.
func listeners(t *testing.T, pid int) (found []string) {
	t.Helper()
	inodes := map[string]bool{}
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, file := range files {
		if target, err := os.Readlink(file); err == nil && strings.HasPrefix(target, "socket:[") {
			inodes[strings.Trim(strings.TrimPrefix(target, "socket:"), "[]")] = true
		}
	}
	for _, protocol := range []string{"tcp", "tcp6", "udp", "udp6"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, protocol))
		if err != nil {
			continue // the process has ended, or the machine has no IPv6
		}
		for line := range strings.Lines(string(text)) {
			// The columns are: sl, local address, remote address, state. 0A is LISTEN, and 07 a datagram socket without
			// a peer.
			fields := strings.Fields(line)
			if len(fields) > 9 && inodes[fields[9]] && (fields[3] == "0A" || fields[3] == "07") {
				found = append(found, protocol+" "+fields[1])
			}
		}
	}
	return found
}

// withDescendants returns a process and all its descendants.
func withDescendants(t *testing.T, pid int) []int {
	t.Helper()
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	children := map[int][]int{}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // the process has ended
		}
		_, rest, _ := bytes.Cut(text, []byte(") "))
		if fields := strings.Fields(string(rest)); len(fields) > 1 {
			child, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			parent, _ := strconv.Atoi(fields[1])
			children[parent] = append(children[parent], child)
		}
	}
	all := []int{pid}
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all
}
