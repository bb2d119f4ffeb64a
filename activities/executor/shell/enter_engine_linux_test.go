//go:build engines

package shell

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchyard/activities/executor"
	"switchyard/dev/testneeds"
)

func TestInsideConformanceInCgroupsAndSandboxes(t *testing.T) {
	for name, one := range map[string]struct {
		mechanism Mechanism
		sandbox   bool
	}{"cgroup": {Cgroup, false}, "sandbox": {Cgroup, true}, "sandbox without cgroup": {EnvMarker, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			insideConformance(t, needSandbox(t, Options{Mechanism: one.mechanism}), one.sandbox)
		})
	}
}

func TestEnteredProgramsShareTheSandboxOfTheAttempt(t *testing.T) {
	e := needSandbox(t, Options{})
	a := lastingAttempt(t, true)
	facts := `id -u; id -g; id -G; grep -E "^(Cap|NoNewPrivs|Seccomp)" /proc/self/status; for s in mnt net ipc; do readlink /proc/self/ns/$s; done; ls /proc | grep -c "^[0-9]*$" >/dev/null; cat /tmp/mark`
	file := filepath.Join(a.Dirs.Workspace, "facts")
	a.Spec = spec(t, map[string]any{"command": "echo mark >/tmp/mark; { " + facts + "; } >$FILE.part; mv $FILE.part $FILE; while :; do sleep 0.1; done", "sandbox": true})
	a.Env["FILE"] = file
	l := startLasting(t, e, a)
	testneeds.Await(t, "the attempt has told its facts", func() bool {
		_, err := os.Stat(file)
		return err == nil
	})
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := l.output(t, facts); got != string(want) {
		t.Errorf("the attempt is\n%sand who enters it\n%s", want, got)
	}
	for script, want := range map[string]string{
		`(echo x >/etc/x) 2>/dev/null || echo cannot`:                     "cannot\n",
		fmt.Sprintf("kill -0 %d 2>/dev/null || echo cannot", os.Getpid()): "cannot\n",
		`tty 2>&1 || true`: "not a tty\n",
	} {
		if got := l.output(t, script); got != want {
			t.Errorf("%s prints %q, want %q", script, got, want)
		}
	}
	// The network is the attempt's own, so the port is not one of the node.
	listener, err := l.inside.Listen(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if conn, err := net.Dial("tcp", listener.Addr().String()); err == nil {
		conn.Close()
		t.Error("the node has the port, too")
	}
	// The program can open its terminal by name.
	var out strings.Builder
	status, err := l.inside.Exec(t.Context(), executor.Command{Args: []string{"sh", "-c", `echo named >"$(tty)"`}, Stdout: &out, Terminal: &executor.Terminal{}})
	if err != nil || status.Code != 0 || out.String() != "named\r\n" {
		t.Errorf("%+v, %q, error %v", status, out.String(), err)
	}
}

func TestEnteredProgramsCountTowardsTheMemoryLimit(t *testing.T) {
	for _, sandbox := range []bool{false, true} {
		t.Run(fmt.Sprint(sandbox), func(t *testing.T) {
			t.Parallel()
			e := needSandbox(t, Options{})
			a := lastingAttempt(t, sandbox)
			a.Limits = executor.Limits{Memory: 64 << 20, Processes: 200}
			l := startLasting(t, e, a)
			status, err := l.inside.Exec(t.Context(), executor.Command{Args: []string{"dd", "if=/dev/zero", "of=/dev/null", "bs=80M", "count=1"}})
			if err != nil || status.Signal != "KILL" {
				t.Errorf("%+v, error %v", status, err)
			}
		})
	}
}
