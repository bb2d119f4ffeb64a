//go:build engines

package e2e

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/activities/sessions/ticket"
	"switchyard/activities/sessions/wire"
	"switchyard/dev/processes"
	v1 "switchyard/proto/switchyard/v1"
)

// TestSessionsOfAFleet checks that sessions in a deployment with several gateways, tokens and https reach exactly what
// they are allowed to.
func TestSessionsOfAFleet(t *testing.T) {
	t.Parallel()
	f := startSessionFleet(t)
	t.Run("through the other gateway", func(t *testing.T) { testSessionThroughPeer(t, f) })
	t.Run("tickets", func(t *testing.T) { testTicketsCountOnce(t, f) })
	t.Run("forged headers", func(t *testing.T) { testForgedHeadersChangeNothing(t, f) })
	t.Run("ports of the node", func(t *testing.T) { testNodeListensNowhere(t, f) })
	t.Run("side by side", func(t *testing.T) {
		for name, test := range map[string]func(t *testing.T, f *sessionFleet){
			"strangers": testStrangersLearnNothing, "ended": testEndedTaskIsNotEntered,
			"resizes": testResizesReachPrograms, "escape sequences": testEscapesReachNoTerminal,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, f)
			})
		}
	})
	t.Run("cut transfers", func(t *testing.T) { testCutTransfersAreRepeated(t, f) })
	t.Run("loss of the leader", func(t *testing.T) { testMachineOutlivesLeader(t, f) })
}

// testSessionThroughPeer checks a client connected to the second gateway while the node is connected to the first.
func testSessionThroughPeer(t *testing.T, f *sessionFleet) {
	for _, task := range []string{"box", "work"} {
		if code, stdout, stderr := f.inside(t, 1, f.id, task, "echo here; exit 7"); code != 7 || stdout != "here\n" {
			t.Errorf("%s: exit code %d, %q, %s", task, code, stdout, stderr)
		}
	}
	client := as(f.openSSH("ann", 1), "box."+f.id)
	if out, err := client.SSH(nil, "echo there").Output(); err != nil || string(out) != "there\n" {
		t.Errorf("by OpenSSH: %q, %v", out, err)
	}
}

// testTicketsCountOnce lets a relay between gateway and node replay the tickets of other sessions.
func testTicketsCountOnce(t *testing.T, f *sessionFleet) {
	if code, _, stderr := f.inside(t, 0, f.id, "work", "true"); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	used := f.relay.lastHeader()
	defer f.relay.onHeader(nil)
	for says, change := range map[string]func(key []byte, h *v1.SessionHeader) *v1.SessionHeader{
		"was used before": func([]byte, *v1.SessionHeader) *v1.SessionHeader { return used },
		"not issued by the gateway": func(_ []byte, h *v1.SessionHeader) *v1.SessionHeader {
			h.Task, h.Ticket = "box", used.GetTicket()
			return h
		},
		"no ticket": func(_ []byte, h *v1.SessionHeader) *v1.SessionHeader {
			h.Ticket = nil
			return h
		},
		"has expired": func(key []byte, h *v1.SessionHeader) *v1.SessionHeader {
			if err := ticket.Sign(key, h, time.Now().Add(-time.Hour)); err != nil {
				t.Error(err)
			}
			return h
		},
		"for node elsewhere": func(key []byte, h *v1.SessionHeader) *v1.SessionHeader {
			h.Node = "elsewhere"
			if err := ticket.Sign(key, h, time.Now()); err != nil {
				t.Error(err)
			}
			return h
		},
	} {
		f.relay.onHeader(change)
		code, stdout, stderr := f.inside(t, 0, f.id, "work", "echo entered")
		if code == 0 || stdout != "" || !strings.Contains(stderr, says) {
			t.Errorf("%s: exit code %d, %q, %s", says, code, stdout, stderr)
		}
		processes.Await(t, "the refusal is in the audit: "+says, func() bool {
			for _, e := range f.audit(t, f.id, "permission_denied") {
				if e.By == "ann" && e.Action == "session exec" && e.Objects["task"] == "work" && e.Objects["node"] == "box" && strings.Contains(e.Reason, says) {
					return true
				}
			}
			return false
		})
	}
}

// testForgedHeadersChangeNothing checks that the gateway replaces a client's claims about the node, the dispatch and
// the user with its own data, and that the endpoint for peers refuses clients without proof.
func testForgedHeadersChangeNothing(t *testing.T, f *sessionFleet) {
	session := f.dial(t)
	forged := &v1.SessionHeader{
		Kind: "exec", RunId: f.id, Task: "work", Exec: &v1.SessionExec{Command: []string{"true"}},
		Node: "elsewhere", Chain: "other", Claim: 99, By: "root", Ticket: &v1.SessionTicket{Id: []byte("0123456789abcdef")},
	}
	conn, err := session.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	reply, err := wire.Request(t.Context(), conn, forged)
	if err != nil {
		t.Fatal(err)
	}
	wire.Abort(conn, "")
	if h := f.relay.lastHeader(); h.GetBy() != "ann" || h.GetNode() != "box" || h.GetClaim() == 99 || h.GetChain() == "other" || reply.GetNode() != "box" {
		t.Errorf("the node is sent %v", h)
	}
	for _, proof := range []string{"", "forged.proof"} {
		_, err := wire.Dial(t.Context(), wire.DialOptions{URL: f.urls[0], Path: "/v1/peers", TLS: f.tls, Header: http.Header{"Switchyard-Peer": {proof}}})
		if refused, ok := errors.AsType[*wire.RefusedError](err); !ok || refused.Status != http.StatusUnauthorized {
			t.Errorf("the door for gateways answers the proof %q with %v", proof, err)
		}
	}
	processes.Await(t, "the refusals are in the audit", func() bool {
		return slices.ContainsFunc(f.audit(t, "", "unauthenticated"), func(e auditEntry) bool { return strings.Contains(e.Action, "/v1/peers") })
	})
}

// refusal is a command that must be refused.
type refusal struct {
	name string
	run  func(t *testing.T, f *sessionFleet, who, id, task string) (code int, stdout, stderr string)
}

// refusals returns all ways into a task.
func refusals() []refusal {
	command := func(args func(id, task string) []string) func(t *testing.T, f *sessionFleet, who, id, task string) (int, string, string) {
		return func(t *testing.T, f *sessionFleet, who, id, task string) (int, string, string) {
			return f.run(t, who, 0, args(id, task)...)
		}
	}
	return []refusal{
		{"exec", command(func(id, task string) []string { return []string{"runs", "exec", id, task, "--", "echo", "entered"} })},
		{"ssh", command(func(id, task string) []string { return []string{"ssh", id, task, "--", "echo", "entered"} })},
		{"port-forward", command(func(id, task string) []string { return []string{"runs", "port-forward", id, task, "0:80"} })},
		{"cp from", command(func(id, task string) []string { return []string{"runs", "cp", id + "/" + task + ":/etc/passwd", "-"} })},
		{"cp to", command(func(id, task string) []string { return []string{"runs", "cp", "README.md", id + "/" + task + ":/tmp/"} })},
		{"OpenSSH", func(t *testing.T, f *sessionFleet, who, id, task string) (int, string, string) {
			return f.openSSHRun(who, task+"."+id, "echo entered")
		}},
	}
}

// openSSHRun runs a command line over OpenSSH as a user of the SSH endpoint.
func (f *sessionFleet) openSSHRun(who, user, line string) (code int, stdout, stderr string) {
	client := f.ann
	if who == "bob" {
		client = f.bob
	}
	cmd := as(client, user).SSH(nil, line)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run() // the exit code is read from the state
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// testStrangersLearnNothing checks that another user's run gives the same answer as one that does not exist.
func testStrangersLearnNothing(t *testing.T, f *sessionFleet) {
	unknown := f.id[:len(f.id)-4] + "zzzz"
	for _, r := range refusals() {
		for _, task := range []string{"box", "nosuch"} {
			code, stdout, stderr := r.run(t, f, "bob", f.id, task)
			other, otherOut, otherErr := r.run(t, f, "bob", unknown, task)
			stderr, otherErr = strings.ReplaceAll(stderr, f.id, "RUN"), strings.ReplaceAll(otherErr, unknown, "RUN")
			if code == 0 || stdout != "" || strings.TrimSpace(stderr) == "" || code != other || stdout != otherOut || stderr != otherErr {
				t.Errorf("%s of %s: exit code %d, %q, %q; of an unknown run %d, %q, %q", r.name, task, code, stdout, stderr, other, otherOut, otherErr)
			}
		}
	}
	processes.Await(t, "the refusals are in the audit", func() bool {
		kinds := map[string]bool{}
		for _, e := range f.audit(t, f.id, "not_found") {
			if e.By == "bob" {
				kinds[e.Action] = true
			}
		}
		return kinds["session exec"] && kinds["session read_tar"]
	})
}

// testEndedTaskIsNotEntered checks that each way into an ended task reports that it has ended.
func testEndedTaskIsNotEntered(t *testing.T, f *sessionFleet) {
	for _, r := range refusals() {
		code, stdout, stderr := r.run(t, f, "ann", f.id, "done")
		if code == 0 || stdout != "" || !strings.HasPrefix(stderr, "switchyard: task done of run "+f.id+" has ended") {
			t.Errorf("%s: exit code %d, %q, %q", r.name, code, stdout, stderr)
		}
	}
}
