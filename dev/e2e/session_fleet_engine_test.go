//go:build engines

package e2e

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"switchyard/activities/executor/container/enginetest"
	"switchyard/dev/chaos/drill"
	"switchyard/dev/processes"
	"switchyard/dev/sessiontest"
)

// sessionFleet is a deployment of two gateways, which require tokens and serve https and SSH, and a node that reaches
// the first gateway, which leads, through a relay. Each part is a process of its own. ann and bob are users. A run of ann
// has a machine, a shell task and an ended task.
type sessionFleet struct {
	t             *testing.T
	dir, temporal string
	image         string
	certs         *certificates
	tls           *tls.Config
	gateways      [2]*processes.Program
	urls, doors   [2]string
	relay         *sessionRelay
	worker        *processes.Program
	ann, bob      *sessiontest.OpenSSH
	id            string
}

func startSessionFleet(t *testing.T) *sessionFleet {
	t.Helper()
	image, dir := enginetest.Image(t), t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil { // state that a later worker recovers must belong to this user alone
		t.Fatal(err)
	}
	f := &sessionFleet{t: t, dir: dir, image: image, certs: newCertificates(t)}
	roots := x509.NewCertPool()
	roots.AddCert(f.certs.cert)
	f.tls = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	server := startOther(t, self, drill.ServerVariables(filepath.Join(dir, "temporal.db"), ""))
	f.temporal = strings.Fields(server.Line(server.Stdout, "Temporal"))[1]
	for i := range f.gateways {
		f.startGateway(i, "127.0.0.1:0", "127.0.0.1:0")
		if i == 0 {
			f.gateways[i].Line(f.gateways[i].Stderr, "this process is the leader")
		}
	}
	t.Cleanup(func() { // after the worker has ended
		if left := strings.Fields(f.containers(t, f.id, "box")); f.id != "" && len(left) > 0 {
			if out, err := exec.Command("docker", append([]string{"rm", "-f"}, left...)...).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		}
	})
	f.relay = startSessionRelay(t, f.urls[0], f.tls)
	f.token("ann", "--role", "user")
	f.token("bob", "--role", "user")
	f.token("box", "--role", "node", "--node", "box")
	f.worker = startWith(t, []string{"TEMPORAL_ADDRESS=" + f.temporal, "SWITCHYARD_GATEWAY=" + f.relay.URL, "SWITCHYARD_TOKEN_FILE=" + f.file("box")},
		"worker", "--name", "box", "--spool-dir", f.file("spool"), "--scratch-dir", dir, "--metrics-address", "none")
	f.worker.Line(f.worker.Stdout, "Node")
	f.ann, f.bob = f.openSSH("ann", 0), f.openSSH("bob", 0)
	f.id = f.submit(fmt.Sprintf(`
name: desk
tasks:
  box: { type: vps, spec: { image: %q, pullPolicy: never, sshPublicKey: %q }, resources: { cores: 0 } }
  work: { type: shell, spec: { command: sleep 100000 }, resources: { cores: 0 } }
  done: { type: shell, spec: { command: 'true' }, resources: { cores: 0 } }
`, image, strings.TrimSpace(f.ann.AuthorizedKey())))
	for task, state := range map[string]string{"box": "running", "work": "running", "done": "completed"} {
		f.await(f.id, task, state)
	}
	for i := range f.gateways {
		processes.Await(t, "sessions reach the node", func() bool {
			code, _, _ := f.inside(t, i, f.id, "work", "true")
			return code == 0
		})
	}
	return f
}

func (f *sessionFleet) file(name string) string { return filepath.Join(f.dir, name) }

// startGateway starts a gateway at the given addresses. Port 0 means a free port.
func (f *sessionFleet) startGateway(i int, address, door string) {
	f.t.Helper()
	p := startWith(f.t, []string{"TEMPORAL_ADDRESS=" + f.temporal}, "gateway", "--address", address, "--ssh-address", door,
		"--store", f.file("store"), "--admin-token-file", f.file("admin"), "--auth", "tokens",
		"--tls-cert", f.certs.file("server.pem"), "--tls-key", f.certs.file("server.key"), "--peer-ca", f.certs.file("authority.pem"))
	f.urls[i] = p.Field("Gateway")
	f.doors[i] = strings.TrimSuffix(strings.Fields(strings.TrimPrefix(p.Line(p.Stdout, "SSH"), "SSH"))[0], ":")
	f.gateways[i] = p
}

// start starts a command of a user on a gateway.
func (f *sessionFleet) start(t *testing.T, who string, gateway int, args ...string) *processes.Program {
	t.Helper()
	return startWith(t, f.variables(who, gateway), args...)
}

// variables returns the environment of a user of a gateway.
func (f *sessionFleet) variables(who string, gateway int) []string {
	return []string{"SWITCHYARD_GATEWAY=" + f.urls[gateway], "SWITCHYARD_CA=" + f.certs.file("authority.pem"), "SWITCHYARD_TOKEN_FILE=" + f.file(who)}
}

// run runs a command of a user on a gateway to its end.
func (f *sessionFleet) run(t *testing.T, who string, gateway int, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	p := f.start(t, who, gateway, args...)
	code = p.Wait()
	return code, p.Stdout.String(), p.Stderr.String()
}

// must runs a command of a user on the first gateway and returns its output. It fails the test if the command fails.
func (f *sessionFleet) must(t *testing.T, who string, args ...string) string {
	t.Helper()
	code, stdout, stderr := f.run(t, who, 0, args...)
	if code != 0 {
		t.Fatalf("%v exits with %d: %s%s", args, code, stdout, stderr)
	}
	return stdout
}

// token creates a token with a name, in a file.
func (f *sessionFleet) token(name string, args ...string) {
	f.t.Helper()
	var made struct{ Secret string }
	stdout := f.must(f.t, "admin", append([]string{"tokens", "create", "--name", name, "-o", "json"}, args...)...)
	if err := json.Unmarshal([]byte(stdout), &made); err != nil || made.Secret == "" {
		f.t.Fatalf("%v: %s", err, stdout)
	}
	if err := os.WriteFile(f.file(name), []byte(made.Secret+"\n"), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// openSSH returns an OpenSSH client of a gateway's SSH endpoint, with a registered key of a user.
func (f *sessionFleet) openSSH(who string, gateway int) *sessiontest.OpenSSH {
	f.t.Helper()
	client := sessiontest.NewOpenSSH(f.t, f.doors[gateway], "")
	key := f.file(fmt.Sprintf("%s-%d.pub", who, gateway))
	if err := os.WriteFile(key, []byte(client.AuthorizedKey()), 0o600); err != nil {
		f.t.Fatal(err)
	}
	f.must(f.t, who, "keys", "add", key)
	return client
}

// as returns a client that logs in under another name.
func as(client *sessiontest.OpenSSH, user string) *sessiontest.OpenSSH {
	other := *client
	other.User = user
	return &other
}

// submit starts a run of ann.
func (f *sessionFleet) submit(definition string) string {
	f.t.Helper()
	return strings.TrimSpace(f.must(f.t, "ann", "submit", write(f.t, definition)))
}

// get returns a run.
func (f *sessionFleet) get(t *testing.T, gateway int, id string) processes.Run {
	t.Helper()
	code, stdout, stderr := f.run(t, "admin", gateway, "runs", "get", id, "-o", "json")
	if code != 0 {
		t.Fatalf("runs get exits with %d: %s", code, stderr)
	}
	return processes.ParseRun(t, stdout)
}

// await waits until a task is in a state.
func (f *sessionFleet) await(id, task, state string) {
	f.t.Helper()
	processes.Await(f.t, "task "+task+" is "+state, func() bool { return f.get(f.t, 0, id).Tasks[task].State == state })
}

// inside runs a shell command line in a task of ann's run.
func (f *sessionFleet) inside(t *testing.T, gateway int, id, task, line string) (code int, stdout, stderr string) {
	t.Helper()
	return f.run(t, "ann", gateway, "runs", "exec", id, task, "--", "sh", "-c", line)
}

// containers lists the containers of a task.
func (f *sessionFleet) containers(t *testing.T, id, task string) string {
	t.Helper()
	out, err := exec.Command("docker", "ps", "-a", "--no-trunc", "--filter", "label=switchyard.run="+id, "--filter", "label=switchyard.task="+task, "--format", "{{.ID}}").Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(bytes.TrimSpace(out))
}

// auditEntry is an entry of the audit.
type auditEntry struct {
	By, Action, Result, Reason string
	Objects                    map[string]string
}

// audit returns the audit entries about an object with the given result, newest first.
func (f *sessionFleet) audit(t *testing.T, object, result string) []auditEntry {
	t.Helper()
	var found list[auditEntry]
	stdout := f.must(t, "admin", "audit", "--object", object, "--result", result, "-o", "json")
	if err := json.Unmarshal([]byte(stdout), &found); err != nil {
		t.Fatalf("%v: %s", err, stdout)
	}
	return found.Items
}
