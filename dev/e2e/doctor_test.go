package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	enumspb "go.temporal.io/api/enums/v1"

	"switchyard/cli/doctor"
	"switchyard/dev/processes"
	"switchyard/dev/temporaltest"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// examine runs `switchyard doctor` with a small limit of open files, or 0 for the usual one, and returns the findings by role and
// check, of several the worst.
func examine(t *testing.T, files int, env []string, args ...string) (code int, found map[string]doctor.Finding) {
	t.Helper()
	limit := ""
	if files > 0 {
		limit = "ulimit -n 256; "
	}
	cmd := exec.Command("sh", append([]string{"-c", limit + `exec "$0" doctor -o json "$@"`, binary}, args...)...)
	cmd.Env = append(env, "HOME="+t.TempDir())
	p := processes.StartForTest(t, cmd)
	code = p.Wait()
	var all struct{ Items []doctor.Finding }
	if err := json.Unmarshal([]byte(p.Stdout.String()), &all); err != nil {
		t.Fatalf("%v: %v\n%s%s", args, err, p.Stdout.String(), p.Stderr.String())
	}
	rank := map[doctor.Result]int{doctor.Skipped: 0, doctor.OK: 1, doctor.Warning: 2, doctor.Failed: 3}
	found = map[string]doctor.Finding{}
	for _, f := range all.Items {
		if before, seen := found[f.Role+" "+f.Check]; !seen || rank[f.Result] > rank[before.Result] {
			found[f.Role+" "+f.Check] = f
		}
	}
	return code, found
}

// expectFinding checks the result of a check, and a text in its detail or remedy.
func expectFinding(t *testing.T, found map[string]doctor.Finding, check string, want doctor.Result, says string) {
	t.Helper()
	if f := found[check]; f.Result != want || !strings.Contains(f.Detail+"\n"+f.Remedy, says) {
		t.Errorf("%s: %+v, want %s with %q", check, f, want, says)
	}
}

func TestDoctorFindsNoFaultInAFleetThatRuns(t *testing.T) {
	t.Parallel()
	s := shared(t)
	address := strings.TrimPrefix(s.Gateway, "http://")
	_, found := examine(t, 0, []string{"TEMPORAL_ADDRESS=" + s.Temporal}, "gateway", "worker", "client",
		"--address", address, "--gateway", s.Gateway, "--store", s.Store, "--metrics-address", "none")
	for check, says := range map[string]string{
		"gateway temporal": "namespace default", "gateway search-attributes": "", "gateway store": "that of the fleet", "gateway ports": "held by this gateway",
		"gateway clock": "Temporal", "gateway versions": "like all", "worker gateway": "is ready", "worker token": "no token", "worker store": "that of the fleet",
		"worker clock": "the gateway", "client gateway": "is ready", "client versions": "like all", "machine open-files": "",
	} {
		expectFinding(t, found, check, doctor.OK, says)
	}
}

// TestDoctorFindsEachPreparedFault gives each fault of a machine to the doctor, and expects what it says and what to do.
func TestDoctorFindsEachPreparedFault(t *testing.T) {
	t.Parallel()
	t.Run("gateway", func(t *testing.T) {
		t.Parallel()
		server, err := temporaltest.Start(temporaltest.Options{SearchAttributes: map[string]enumspb.IndexedValueType{"Customer": enumspb.INDEXED_VALUE_TYPE_KEYWORD}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = server.Stop() })
		taken, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer taken.Close()
		dir := t.TempDir()
		cert, key := writeExpired(t, dir)
		// A store names the cluster to which it belongs.
		if err := os.WriteFile(filepath.Join(dir, "cluster"), []byte("another 2026-01-02T03:04:05Z"), 0o600); err != nil {
			t.Fatal(err)
		}
		code, found := examine(t, 256, []string{"TEMPORAL_ADDRESS=" + server.Address()}, "gateway",
			"--address", taken.Addr().String(), "--store", dir, "--tls-cert", cert, "--tls-key", key)
		if code != 1 {
			t.Errorf("exit code %d", code)
		}
		expectFinding(t, found, "gateway temporal", doctor.OK, "")
		expectFinding(t, found, "gateway search-attributes", doctor.Warning, "temporal operator search-attribute create")
		expectFinding(t, found, "gateway store", doctor.Failed, "another")
		expectFinding(t, found, "gateway ports", doctor.Failed, "choose another address with --address")
		expectFinding(t, found, "gateway certificates", doctor.Failed, "expired on")
		expectFinding(t, found, "gateway private-files", doctor.Failed, "chmod o-rwx "+key)
		expectFinding(t, found, "machine open-files", doctor.Failed, "256 files")
	})
	t.Run("worker", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		engine := filepath.Join(dir, "engine.sock")
		silent, err := net.Listen("unix", engine)
		if err != nil {
			t.Fatal(err)
		}
		defer silent.Close()
		go func() {
			for {
				conn, err := silent.Accept()
				if err != nil {
					return
				}
				_ = conn.Close()
			}
		}()
		code, found := examine(t, 0, []string{"TEMPORAL_ADDRESS=127.0.0.1:1", "DOCKER_HOST=unix://" + engine}, "worker",
			"--name", "box", "--gateway", oldGateway(t), "--store", filepath.Join(os.Args[0], "store"))
		if code != 1 {
			t.Errorf("exit code %d", code)
		}
		expectFinding(t, found, "worker temporal", doctor.Failed, "TEMPORAL_ADDRESS")
		expectFinding(t, found, "worker store", doctor.Failed, "not a directory")
		expectFinding(t, found, "worker clock", doctor.Failed, "chrony")
		expectFinding(t, found, "worker token", doctor.Failed, "tokens create --role node --node box")
		expectFinding(t, found, "worker versions", doctor.Warning, "the gateway has v0.0.9")
		expectFinding(t, found, "worker engine", doctor.Failed, "the container engine at unix://"+engine)
	})
}

// TestDoctorFindsThatTheStoreOfTheFleetIsAway checks the mount point of a store while nothing is mounted there, and a store whose
// name is misspelled, while the gateway of the fleet runs.
func TestDoctorFindsThatTheStoreOfTheFleetIsAway(t *testing.T) {
	t.Parallel()
	s := shared(t)
	dir := t.TempDir()
	for store, says := range map[string]string{dir: "is it mounted?", filepath.Join(dir, "misspelled"): "the fleet on this Temporal has another store than"} {
		code, found := examine(t, 0, []string{"TEMPORAL_ADDRESS=" + s.Temporal}, "gateway", "--address", "127.0.0.1:0", "--store", store)
		if code != 1 {
			t.Errorf("exit code %d", code)
		}
		expectFinding(t, found, "gateway store", doctor.Failed, says)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("the doctor created %v, %v", files, err)
	}
}

// oldGateway starts a gateway that reports another version and a clock five minutes ahead. It returns the URL of the gateway.
func oldGateway(t *testing.T) string {
	mux := http.NewServeMux()
	mux.Handle(switchyardv1connect.NewAuthServiceHandler(oldAuth{}))
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(5*time.Minute).UTC().Format(http.TimeFormat))
	})
	server := httptest.NewUnstartedServer(mux)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

type oldAuth struct {
	switchyardv1connect.UnimplementedAuthServiceHandler
}

func (oldAuth) WhoAmI(context.Context, *connect.Request[v1.WhoAmIRequest]) (*connect.Response[v1.WhoAmIResponse], error) {
	return connect.NewResponse(&v1.WhoAmIResponse{Name: "ann", Role: v1.RoleOperator, Kind: "token", Version: "v0.0.9"}), nil
}

// writeExpired writes a certificate of yesterday, and a key that every user can read.
func writeExpired(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "yard"}, NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(-24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "yard.pem"), filepath.Join(dir, "yard.key")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: text}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o644); err != nil { // whatever the umask
			t.Fatal(err)
		}
	}
	return cert, key
}
