package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"switchyard/dev/processes"
)

// TestRunOfAUserWaitsForAnOperator lets users submit runs and an operator decide, with the real processes. It checks
// that their output contains no token.
func TestRunOfAUserWaitsForAnOperator(t *testing.T) {
	t.Parallel()
	s := startLocked(t, "--approve-runs-of", "user", "--log-level", "debug")
	file := func(name string) string { return filepath.Join(s.dir, name) }
	s.token(t, file("ann"), "--name", "ann", "--role", "user")
	s.token(t, file("eve"), "--name", "eve", "--role", "user")
	s.token(t, file("chief"), "--name", "chief", "--role", "operator")
	as := func(who string, want int, args ...string) (stdout, stderr string) {
		t.Helper()
		return do(t, s.Gateway, want, append(args, "--token-file", file(who))...)
	}
	definition := write(t, "name: gated\ntasks: { build: { type: shell, spec: { command: 'echo built; env' } } }\n")
	submit := func() string {
		t.Helper()
		stdout, _ := as("ann", 0, "submit", definition)
		return strings.TrimSpace(stdout)
	}
	first, second := submit(), submit()
	for _, id := range []string{first, second} {
		processes.Await(t, "the run waits", func() bool {
			stdout, _ := as("ann", 0, "runs", "get", id)
			return strings.Contains(stdout, "pending_approval") && strings.Contains(stdout, "waits for the approval of an operator")
		})
	}
	read := func(who string, args ...string) func() string {
		return func() string {
			stdout, _ := as(who, 0, args...)
			return stdout
		}
	}
	processes.AwaitText(t, "the list has the run", read("ann", "runs", "list", "--state", "pending_approval"), func(list string) bool { return strings.Contains(list, first) })
	if _, stderr := as("eve", 2, "runs", "get", first); !strings.Contains(stderr, "there is no run") {
		t.Errorf("another user: %s", stderr)
	}
	as("ann", 4, "runs", "approve", first)
	as("chief", 0, "runs", "approve", first, "--reason", "looks well")
	if _, stderr := as("chief", 1, "runs", "reject", first); !strings.Contains(stderr, "approved by chief at ") && !strings.Contains(stderr, "has already") && !strings.Contains(stderr, "has just ended") {
		t.Errorf("a second decision: %s", stderr)
	}
	as("ann", 0, "runs", "watch", first)
	as("chief", 0, "runs", "reject", second, "--reason", "not today")
	as("ann", 1, "runs", "watch", second)
	if stdout, _ := as("ann", 0, "runs", "get", second); !strings.Contains(stdout, "rejected by chief: not today") {
		t.Errorf("the rejected run: %s", stdout)
	}
	log := processes.AwaitText(t, "the log has the environment", read("ann", "runs", "logs", first), func(log string) bool {
		return strings.Contains(log, "built") && strings.Contains(log, "SWITCHYARD_RUN_ID="+first)
	})
	if strings.Contains(log, "SWITCHYARD_TOKEN") {
		t.Errorf("the log: %s", log)
	}
	audit := func() string {
		stdout, _ := s.do(t, 0, "audit", "--who", "chief", "-o", "json")
		return stdout
	}
	processes.AwaitText(t, "the audit has the decisions", audit, func(audit string) bool {
		return strings.Contains(audit, "RunService/ApproveRun") && strings.Contains(audit, second)
	})
	for _, token := range []string{"nonsense-of-a-stranger", "sy_abcdefgh_" + strings.Repeat("q", 52)} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.Gateway+"/v1/runs", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		res, err := http.DefaultClient.Do(req)
		if err != nil || res.StatusCode != http.StatusUnauthorized {
			t.Fatal(res, err)
		}
		_ = res.Body.Close()
	}
	http.DefaultClient.CloseIdleConnections()
	s.Signal(syscall.SIGINT)
	s.Wait()

	secrets := map[string]string{"a stranger's": "nonsense-of-a-stranger", "a stranger's that looks like one": strings.Repeat("q", 52)}
	for _, name := range []string{"ann", "eve", "chief"} {
		text, err := os.ReadFile(file(name))
		if err != nil {
			t.Fatal(err)
		}
		secrets[name+"'s"] = strings.TrimSpace(string(text))[strings.LastIndexByte(string(text), '_')+1:]
	}
	look := func(where, text string) {
		t.Helper()
		for whose, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("%s has %s token", where, whose)
			}
		}
	}
	look("the output of the stack", s.Stdout.String())
	look("the log of the stack", s.Stderr.String())
	files := 0
	err := filepath.WalkDir(s.dir, func(path string, entry os.DirEntry, err error) error {
		if name := filepath.Base(path); err != nil || entry.IsDir() || name == "ann" || name == "eve" || name == "chief" {
			return err
		}
		files++
		text, err := os.ReadFile(path)
		look(path, string(text))
		return err
	})
	if err != nil || files < 5 {
		t.Errorf("%d files were searched, %v", files, err)
	}
}
