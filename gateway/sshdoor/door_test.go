package sshdoor

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/ssh"

	"switchyard/activities/executor"
	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	"switchyard/activities/store/storetest"
	"switchyard/dev/sessiontest"
	"switchyard/dev/testneeds"
	"switchyard/gateway/auth"
	"switchyard/gateway/rpcerror"
	"switchyard/gateway/sshkeys"
	v1 "switchyard/proto/switchyard/v1"
)

// limit bounds how long a test waits for an event that must happen.
const limit = time.Minute

func TestMain(m *testing.M) { testneeds.NoLeaks(m) }

// fakeRuns holds runs that tests set up.
type fakeRuns struct {
	mu   sync.Mutex
	runs map[string]Run
	keys map[string]map[string]string // by run, then by task
	away bool
	slow bool // no search returns
}

var errAway = errors.New("Temporal is away")

func (f *fakeRuns) Resolve(ctx context.Context, text string) (string, error) {
	run, err := f.Find(ctx, text)
	if err == nil && !auth.From(ctx).Reaches(run.Owner) {
		err = rpcerror.NoRun(text)
	}
	return run.ID, err
}

func (f *fakeRuns) Find(_ context.Context, id string) (Run, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.away {
		return Run{}, errAway
	}
	run, ok := f.runs[id]
	if !ok {
		return Run{}, rpcerror.NoRun(id)
	}
	return run, nil
}

func (f *fakeRuns) Starting(ctx context.Context, prefix string, most int) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var ids []string
	for id, run := range f.runs {
		if strings.HasPrefix(id, prefix) && run.Open && len(ids) < most {
			ids = append(ids, id)
		}
	}
	if f.slow {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return ids, nil
}

func (f *fakeRuns) TaskKeys(_ context.Context, id string) (map[string]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.keys[id], nil
}

// change changes the runs.
func (f *fakeRuns) change(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

// fixture is a door over fake runs whose tasks execute on this machine.
type fixture struct {
	*Door
	runs  *fakeRuns
	keys  *sshkeys.Registry
	store *store.Store
	dir   string
	mu    sync.Mutex
	// entered and refused record the callbacks of the door.
	entered, refused []string
	now              time.Time
}

func newFixture(t *testing.T, change func(*Config)) *fixture {
	t.Helper()
	f := &fixture{dir: t.TempDir(), now: time.Now(), runs: &fakeRuns{runs: map[string]Run{
		"ci-1": {"ci-1", "ann", true}, "ci.v2-1": {"ci.v2-1", "ann", true}, "bobs": {"bobs", "bob", true}, "nightly": {"nightly", v1.TriggerSchedule, true}, "done": {"done", "ann", false},
	}, keys: map[string]map[string]string{}}}
	f.store = storetest.Open(t, filepath.Join(f.dir, "store"))
	f.keys = sshkeys.NewRegistry(f.store, time.Now)
	cfg := Config{
		Runs: f.runs, Keys: f.keys, Locked: true, Recheck: 50 * time.Millisecond, RefusalTime: 20 * time.Millisecond, Farewell: limit,
		Enter: func(p *auth.Principal, _ net.Addr, run, task string) executor.Inside {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.entered = append(f.entered, fmt.Sprintf("%s/%s/%s/%s/%s", p.Name, p.Role.Word(), p.Kind, run, task))
			return sessiontest.Local{Dir: f.dir}
		},
		OnRefused: func(_ net.Addr, user string, _ ssh.PublicKey, reason error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.refused = append(f.refused, user+": "+reason.Error())
		},
		Now: func() time.Time {
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.now
		},
	}
	if change != nil {
		change(&cfg)
	}
	var err error
	if cfg.HostKey, err = HostKey(t.Context(), f.store); err != nil {
		t.Fatal(err)
	}
	if f.Door, err = Listen(t.Context(), "127.0.0.1:0", cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

func (f *fixture) last() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.entered) == 0 {
		return ""
	}
	return f.entered[len(f.entered)-1]
}

func newSigner(t *testing.T) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

func line(signer ssh.Signer) string { return string(ssh.MarshalAuthorizedKey(signer.PublicKey())) }

// add registers a key for a person.
func (f *fixture) add(t *testing.T, name string, role v1.Role, signer ssh.Signer) *v1.Key {
	t.Helper()
	k, err := f.keys.Add(t.Context(), &auth.Principal{Name: name, Role: role}, signer.PublicKey(), "")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// annsKey registers a new key for the user ann.
func (f *fixture) annsKey(t *testing.T) ssh.Signer {
	t.Helper()
	key := newSigner(t)
	f.add(t, "ann", v1.Role_ROLE_USER, key)
	return key
}

// forgive clears the back-off of the door.
func (f *fixture) forgive() {
	f.backoff.mu.Lock()
	defer f.backoff.mu.Unlock()
	clear(f.backoff.by)
}

// await waits until get returns want.
func await[T comparable](t *testing.T, want T, get func() T) {
	t.Helper()
	for deadline := time.Now().Add(limit); get() != want; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%v, not %v", get(), want)
		}
	}
}

// failures returns the number of failed logins that the door has counted for a key.
func (f *fixture) failures(key ssh.PublicKey) int {
	f.backoff.mu.Lock()
	defer f.backoff.mu.Unlock()
	return f.backoff.by[client{"127.0.0.1", ssh.FingerprintSHA256(key)}].count
}

func (f *fixture) dial(user string, signers ...ssh.Signer) (*ssh.Client, error) {
	return ssh.Dial("tcp", f.Address(), &ssh.ClientConfig{User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(signers...)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(), Timeout: limit})
}

// session logs in and opens a session. The connection is open until the test ends.
func (f *fixture) session(t *testing.T, user string, key ssh.Signer) (*ssh.Client, *ssh.Session) {
	t.Helper()
	client, err := f.dial(user, key)
	if err != nil {
		t.Fatalf("%s: %v", user, err)
	}
	t.Cleanup(func() { _ = client.Close() })
	s, err := client.NewSession()
	if err != nil {
		t.Fatalf("%s: %v", user, err)
	}
	return client, s
}

// refusal returns the reason for which a login without back-off is refused, which must take the time of all refusals.
func (f *fixture) refusal(t *testing.T, user string, key ssh.Signer) string {
	t.Helper()
	f.forgive()
	began := time.Now()
	_, err := f.dial(user, key)
	if err == nil {
		t.Fatalf("%s is open", user)
	}
	if took := time.Since(began); took < f.config.RefusalTime {
		t.Errorf("%s: refused after %v", user, took)
	}
	return err.Error()
}

func TestKeysOpenWhatTheirOwnersReach(t *testing.T) {
	f := newFixture(t, nil)
	ann, bob, op, viewer, old, ofTask, twice := newSigner(t), newSigner(t), newSigner(t), newSigner(t), newSigner(t), newSigner(t), newSigner(t)
	f.add(t, "ann", v1.Role_ROLE_USER, ann)
	f.add(t, "eve", v1.Role_ROLE_USER, ann) // eve has added the key of another person
	f.add(t, "bob", v1.Role_ROLE_USER, bob)
	f.add(t, "op", v1.Role_ROLE_OPERATOR, op)
	f.add(t, "ann", v1.Role_ROLE_VIEWER, viewer)
	f.add(t, "ann"+auth.Unverified, v1.Role_ROLE_ADMIN, old)
	f.runs.keys["ci-1"] = map[string]string{"box": "# mine\n" + line(ofTask) + line(twice), "each": line(twice)}
	f.runs.keys["nightly"] = map[string]string{"box": line(ofTask)}
	f.runs.keys["done"] = map[string]string{"box": line(ofTask)}
	for _, test := range []struct {
		user string
		key  ssh.Signer
		want string // empty means refused
	}{
		{"web.ci-1", ann, "ann/user/ssh_key/ci-1/web"}, {"ci-1", ann, "ann/user/ssh_key/ci-1/"}, {"each[3].ci-1", ann, "ann/user/ssh_key/ci-1/each[3]"},
		{"ci.v2-1", ann, "ann/user/ssh_key/ci.v2-1/"}, {"web.ci.v2-1", ann, "ann/user/ssh_key/ci.v2-1/web"},
		{"web.bobs", ann, ""}, {"web.done", ann, ""}, {"web.none", ann, ""}, {"web.nightly", ann, ""}, {"", ann, ""}, {".", ann, ""}, {"a\x1b[2J.ci-1\x00", ann, ""},
		{"web.ci-1", bob, ""}, {"web.bobs", bob, "bob/user/ssh_key/bobs/web"},
		{"web.ci-1", op, "op/operator/ssh_key/ci-1/web"}, {"web.nightly", op, "op/operator/ssh_key/nightly/web"},
		{"web.ci-1", viewer, ""}, {"web.ci-1", old, ""}, {"web.ci-1", newSigner(t), ""},
		{"box.ci-1", ofTask, "ann/user/ssh_key/ci-1/box"}, {"ci-1", ofTask, "ann/user/ssh_key/ci-1/box"}, {"web.ci-1", ofTask, ""}, {"each.ci-1", ofTask, ""}, {"box.bobs", ofTask, ""}, {"box.done", ofTask, ""},
		{"each[2].ci-1", twice, "ann/user/ssh_key/ci-1/each[2]"}, {"box[2].ci-1", ofTask, "ann/user/ssh_key/ci-1/box[2]"},
		{"box.nightly", ofTask, "schedule/operator/ssh_key/nightly/box"},
	} {
		f.forgive() // so that the refusals of this test cause no back-off
		client, err := f.dial(test.user, test.key)
		if (err == nil) != (test.want != "") {
			t.Errorf("%q: %v", test.user, err)
		}
		if err == nil {
			_ = client.Close()
			await(t, test.want, f.last)
		}
	}
	_, s := f.session(t, "ci-1", twice)
	if out, err := s.CombinedOutput("true"); err == nil || !strings.Contains(string(out), "log in as one of box.ci-1, each.ci-1") {
		t.Errorf("%s, %v", out, err)
	}
}

func TestRegisteredKeysOpenEveryRunWithoutAuthentication(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.Locked = false })
	key := newSigner(t)
	f.add(t, "ann"+auth.Unverified, v1.Role_ROLE_ADMIN, key)
	f.session(t, "web.bobs", key)
	await(t, "ann (unverified)/admin/none/bobs/web", f.last)
	if _, err := f.dial("web.bobs", newSigner(t)); err == nil {
		t.Error("a key that no one has added was let in")
	}
}

// TestRefusalsLookAlike compares the refusals of clients that have another person's public key or an unrelated key of their
// own.
func TestRefusalsLookAlike(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.RefusalTime = 50 * time.Millisecond })
	ann, eve := f.annsKey(t), newSigner(t)
	f.add(t, "eve", v1.Role_ROLE_USER, eve)
	said := map[string]bool{}
	for _, user := range []string{"web.ci-1", "web.none", "web.bobs", "web.done"} {
		for _, key := range []ssh.Signer{eve, newSigner(t)} {
			said[f.refusal(t, user, key)] = true
		}
		// A client without the private key is asked for a signature, whether or not the run exists.
		asked := false
		_, err := f.dial(user, unable{ann, &asked})
		if err == nil || !asked {
			t.Errorf("%s: asked for a signature: %v, %v", user, asked, err)
		}
	}
	if len(said) != 1 {
		t.Errorf("%v", said)
	}
}

// unable is a signer without a private key.
type unable struct {
	ssh.Signer
	asked *bool
}

func (u unable) Sign(io.Reader, []byte) (*ssh.Signature, error) {
	*u.asked = true
	return nil, errors.New("no key")
}

func TestRefusalsAreReportedAndHaveABackoff(t *testing.T) {
	f := newFixture(t, nil)
	careless, neighbour := f.annsKey(t), f.annsKey(t)
	failures := func() int { return f.failures(careless.PublicKey()) }
	for n := range freeFailures {
		if _, err := f.dial("web.none", careless); err == nil {
			t.Fatal("it is open")
		}
		await(t, n+1, failures)
	}
	if said, err := f.banner("web.ci-1", careless); err == nil || !strings.Contains(said, "Too many refused logins with the key SHA256:") || !strings.Contains(said, "try again in 1s") {
		t.Fatalf("a key that was refused often: %v, %q", err, said)
	}
	f.mu.Lock()
	if len(f.refused) != freeFailures || !strings.HasPrefix(f.refused[0], "web.none: ") {
		t.Errorf("%q", f.refused)
	}
	f.mu.Unlock()
	f.session(t, "web.ci-1", neighbour) // which has the same address
	f.mu.Lock()
	f.now = f.now.Add(firstPause)
	f.mu.Unlock()
	f.session(t, "web.ci-1", careless)
	await(t, 0, failures)
}

func TestLoginForgivesTheOtherKeysOfTheAgent(t *testing.T) {
	f := newFixture(t, nil)
	stale, good := newSigner(t), f.annsKey(t)
	for range 2 * freeFailures {
		client, err := f.dial("web.ci-1", stale, good)
		if err != nil {
			t.Fatal(err)
		}
		_ = client.Close()
	}
	if n := f.failures(stale.PublicKey()); n != 0 {
		t.Errorf("%d failures of an agent that logged in", n)
	}
}

// banner tries to log in and returns the message that the door shows.
func (f *fixture) banner(user string, key ssh.Signer) (said string, err error) {
	_, err = ssh.Dial("tcp", f.Address(), &ssh.ClientConfig{
		User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(), Timeout: limit,
		BannerCallback: func(message string) error {
			said += message
			return nil
		},
	})
	return said, err
}

func TestOutagesRefuseLoginsWithoutBackoff(t *testing.T) {
	f := newFixture(t, nil)
	key := f.annsKey(t)
	f.runs.change(func() { f.runs.away = true })
	for range 2 * freeFailures { // an outage is not counted as a failed login
		if _, err := f.dial("web.ci-1", key); err == nil || strings.Contains(err.Error(), "away") {
			t.Fatal(err)
		}
	}
	f.runs.change(func() { f.runs.away = false })
	f.session(t, "web.ci-1", key)
}

func TestConnectionsEndWithTheirKeyTheirRunAndTheDoor(t *testing.T) {
	f := newFixture(t, nil)
	mine, ofTask, other := newSigner(t), newSigner(t), f.annsKey(t)
	record := f.add(t, "ann", v1.Role_ROLE_USER, mine)
	f.runs.keys["nightly"] = map[string]string{"box": line(ofTask)}
	for _, test := range []struct {
		user string
		key  ssh.Signer
		end  func()
		says string
	}{
		{"web.ci-1", mine, func() {
			if err := f.keys.Remove(t.Context(), record); err != nil {
				t.Error(err)
			}
		}, "the key was removed"},
		{"box.nightly", ofTask, func() { f.runs.change(func() { f.runs.runs["nightly"] = Run{"nightly", v1.TriggerSchedule, false} }) }, "run nightly has ended"},
		{"web.ci-1", other, func() { f.Close(); f.Close() }, errClosing.Error()},
	} {
		client, s := f.session(t, test.user, test.key)
		var stderr bytes.Buffer
		s.Stderr = &stderr
		out, err := s.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Start("echo ready; exec sleep 1000"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(out, make([]byte, 6)); err != nil {
			t.Fatal(err)
		}
		test.end()
		_ = s.Wait()
		_ = client.Wait()
		if !strings.Contains(stderr.String(), test.says) {
			t.Errorf("%s: %q", test.user, stderr.String())
		}
		if _, err := f.dial(test.user, test.key); err == nil {
			t.Errorf("%s is open", test.user)
		}
	}
}

func TestDoorServesConcurrentLogins(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.LoginTimeout = 2 * time.Minute })
	key := f.annsKey(t)
	var work sync.WaitGroup
	for range 30 {
		work.Go(func() {
			client, err := f.dial("web.ci-1", key)
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { _ = client.Close() }) // later than all logins
			s, err := client.NewSession()
			if err != nil {
				t.Error(err)
				return
			}
			if out, err := s.Output("echo hello"); err != nil || string(out) != "hello\n" {
				t.Errorf("%q, %v", out, err)
			}
		})
	}
	work.Wait()
}

// TestSilentClientIsDisconnected checks that a connection without a login ends after the time for logins.
func TestSilentClientIsDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		l := &login{conn: server, door: &Door{ctx: t.Context(), config: Config{HostKey: newSigner(t), LoginTimeout: 30 * time.Second}}}
		began := time.Now()
		go func() { _, _ = io.Copy(io.Discard, client) }()
		if _, _, _, err := l.handshake(); err == nil || time.Since(began) != 30*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

func TestConnectionsWithoutALoginAreBounded(t *testing.T) {
	var s startups
	for range maxStartupsOf {
		if !s.connect("a") {
			t.Fatal("too few")
		}
	}
	if s.connect("a") || !s.connect("b") {
		t.Error("one network takes the room of another")
	}
	s.started("a")
	if !s.connect("a") || s.connected != maxStartupsOf+2 {
		t.Error("one that has logged in counts as one that has not")
	}
}

func TestBackoffIsBounded(t *testing.T) {
	var b backoff
	now := time.Now()
	for i := range maxClients + 100 {
		b.add(client{fmt.Sprint(i), "key"}, now.Add(time.Duration(i)*time.Microsecond))
	}
	if len(b.by) > maxClients {
		t.Errorf("%d clients", len(b.by))
	}
	often := client{"x", "key"}
	for range 100 {
		b.add(often, now)
	}
	if b.remaining(often, now.Add(longestPause-time.Second)) != time.Second || b.remaining(often, now.Add(longestPause)) != 0 {
		t.Error("the wait has no end, or none")
	}
	for address, want := range map[string]string{"192.0.2.1:5": "192.0.2.1", "[::ffff:192.0.2.1]:5": "192.0.2.1", "[2001:db8:1:2:3::4]:5": "2001:db8:1:2::/64", "[fe80::1%eth0]:5": "fe80::/64"} {
		if got := networkOf(fakeAddr(address)); got != want {
			t.Errorf("%s: %s", address, got)
		}
	}
}

type fakeAddr string

func (fakeAddr) Network() string  { return "tcp" }
func (a fakeAddr) String() string { return string(a) }

// TestGatewaysShareOnePrivateHostKey creates the host key from eight gateways at once. It also checks the mode of the key
// file and that a damaged key is an error.
func TestGatewaysShareOnePrivateHostKey(t *testing.T) {
	dir := t.TempDir()
	var work sync.WaitGroup
	prints := make([]string, 8)
	for i := range prints {
		kept := storetest.Open(t, dir)
		work.Go(func() {
			key, err := HostKey(t.Context(), kept)
			if err != nil {
				t.Error(err)
				return
			}
			prints[i] = ssh.FingerprintSHA256(key.PublicKey())
		})
	}
	work.Wait()
	for _, print := range prints {
		if print != prints[0] || print == "" {
			t.Fatalf("%q", prints)
		}
	}
	path := filepath.Join(dir, filepath.FromSlash(storekey.HostKey))
	for _, test := range []struct {
		path string
		want fs.FileMode
	}{{path, 0o600}, {filepath.Dir(path), 0o700}} {
		info, err := os.Stat(test.path)
		if err != nil || info.Mode().Perm() != test.want {
			t.Errorf("%s: %v, %v", test.path, info.Mode(), err)
		}
	}
	if err := os.WriteFile(path, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := HostKey(t.Context(), storetest.Open(t, dir)); err == nil || !strings.Contains(err.Error(), storekey.HostKey) {
		t.Error(err)
	}
}

// TestKeyOfATaskOpensItsRunByAPrefix checks that a prefix opens a run if only that run names the key, and that all other
// prefixes are refused alike.
func TestKeyOfATaskOpensItsRunByAPrefix(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.RefusalTime = limit }) // which bounds searches, too
	hasty := newFixture(t, func(c *Config) { c.Runs, c.RefusalTime = f.runs, 50*time.Millisecond })
	key, other := newSigner(t), newSigner(t)
	for id, owner := range map[string]string{"vps-7k2m9x": "ann", "vps-8aaaaa": "ann", "vps-9bbbbb": "bob", "vps-old": "ann"} {
		f.runs.runs[id] = Run{id, owner, id != "vps-old"}
	}
	f.runs.keys["vps-7k2m9x"] = map[string]string{"box": line(key)}
	f.runs.keys["vps-old"] = map[string]string{"box": line(key)}
	f.runs.keys["vps-9bbbbb"] = map[string]string{"box": line(other)}
	for _, user := range []string{"vps-7k2m9x", "vps-7k", "vps", "box.vps-7", "box.vps", "box[1].vps-7"} {
		f.forgive()
		client, err := f.dial(user, key)
		if err != nil {
			t.Errorf("%s: %v", user, err)
			continue
		}
		_ = client.Close()
	}
	said := map[string]bool{}
	refuse := func(user string) {
		t.Helper()
		said[hasty.refusal(t, user, key)] = true
	}
	for _, user := range []string{"v", "vps-9", "vps-8", "web.vps-7", "vps-o", "none"} {
		refuse(user)
	}
	f.runs.change(func() { f.runs.keys["vps-8aaaaa"] = map[string]string{"box": line(key)} })
	refuse("vps")
	f.runs.change(func() {
		for i := range maxStarting {
			id := fmt.Sprint("many-", i)
			f.runs.runs[id] = Run{id, "ann", true}
		}
		f.runs.runs["many-x"], f.runs.keys["many-x"] = Run{"many-x", "ann", true}, map[string]string{"box": line(key)}
	})
	refuse("many")
	f.runs.change(func() { f.runs.slow = true })
	refuse("vps-7")
	if len(said) != 1 {
		t.Errorf("%v", said)
	}
}
