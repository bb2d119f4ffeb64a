package doctor

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/executor/container"
	"switchyard/activities/executor/qemu"
	"switchyard/cli/client"
	"switchyard/cli/exit"
	"switchyard/gateway/auth"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// TestEachObservationIsJudged checks the result of each judgment, and a word of its detail or remedy.
func TestEachObservationIsJudged(t *testing.T) {
	errAny := errors.New("broken")
	now := time.Date(2026, 3, 14, 0, 0, 0, 0, time.UTC)
	in := func(d time.Duration) *timestamppb.Timestamp { return timestamppb.New(now.Add(d)) }
	lacks := map[string]enumspb.IndexedValueType{"SwitchyardState": enumspb.INDEXED_VALUE_TYPE_KEYWORD}
	port := Port{Flag: "--address", Address: "127.0.0.1:7280"}
	metrics := Port{Flag: "--metrics-address", Address: "127.0.0.1:7281", Optional: true}
	folder := Folder{What: "store", Path: "/data"}
	expiring := newCertificate(t, now.Add(24*time.Hour))
	private, shared := PrivateFile{What: "key", Path: "/k"}, PrivateFile{What: "key", Path: "/k", Group: true}
	worker := func(who *v1.WhoAmIResponse) Finding { return judgeToken(RoleWorker, "box", who, nil, now) }
	held := func(port Port, isOwn bool, program string, args ...string) Finding {
		role := RoleGateway
		if port == metrics {
			role = RoleWorker
		}
		return judgePort(role, port, syscall.EADDRINUSE, &holder{7, program, append([]string{program}, args...)}, isOwn)
	}
	store := func(change func(*storeView)) Finding {
		v := storeView{isFolder: true, cluster: "mine", leader: &historyv1.LeaderHeartbeat{Store: "a"}}
		v.Location, v.IsStore, v.Identity, v.Claim.Cluster = "/data", true, "a", "mine"
		change(&v)
		return judgeStore(v)
	}
	for _, test := range []struct {
		found Finding
		want  Result
		says  string
	}{
		{judgeSettings(nil), OK, ""},
		{judgeSettings(&exit.Error{Err: errAny, Hint: "add --auth"}), Failed, "add --auth"},
		{judgeTemporal("1.32.1", "default", nil), OK, "Temporal 1.32.1"},
		{judgeTemporal("", "", errAny), Failed, "TEMPORAL_ADDRESS"},
		{judgeAttributes("default", nil, false, nil), OK, ""},
		{judgeAttributes("default", nil, false, errAny), Failed, "broken"},
		{judgeAttributes("default", lacks, false, nil), Warning, "start the gateway"},
		{judgeAttributes("default", lacks, true, nil), Failed, "--name SwitchyardState --type Keyword"},
		{judgeGateway("http://yard", client.Health{Ready: true}, nil), OK, "http://yard"},
		{judgeGateway("http://yard", client.Health{Word: "unavailable"}, nil), Failed, "doctor gateway"},
		{judgeGateway("", client.Health{}, &exit.Error{Err: errAny, Hint: "use --ca"}), Failed, "use --ca"},
		{worker(&v1.WhoAmIResponse{Kind: auth.KindNone}), OK, "no token"},
		{worker(&v1.WhoAmIResponse{Kind: auth.KindToken, Role: v1.RoleNode, Node: "box", ExpiresAt: in(time.Hour * 1000)}), OK, "role node"},
		{worker(&v1.WhoAmIResponse{Kind: auth.KindToken, Role: v1.RoleNode, Node: "box", ExpiresAt: in(time.Hour)}), Warning, "2026-03-14 01:00:00"},
		{worker(&v1.WhoAmIResponse{Kind: auth.KindToken, Role: v1.RoleNode, Node: "bax"}), Failed, "--node box"},
		{worker(&v1.WhoAmIResponse{Kind: auth.KindToken, Role: v1.RoleAdmin}), Failed, "with the role admin"},
		{judgeToken(RoleClient, "", &v1.WhoAmIResponse{Kind: auth.KindToken, Role: v1.RoleAdmin}, nil, now), OK, "role admin"},
		{judgeToken(RoleClient, "", nil, &exit.Error{Err: errAny, Hint: "log in"}, now), Failed, "log in"},
		{judgeToken(RoleWorker, "box", nil, errAny, now), Failed, "tokens create"},
		{judgeClock("the gateway", 0), OK, ""},
		{judgeClock("the gateway", -4*time.Second), Warning, "4s ahead of"},
		{judgeClock("the gateway", 5*time.Minute), Failed, "5m0s behind"},
		{judgeClock("Temporal", beatSkew(now, now.Add(-3*time.Second))), OK, ""},
		{judgeClock("Temporal", beatSkew(now, now.Add(time.Minute))), Failed, "1m0s behind"},
		{judgeClock("Temporal", beatSkew(now, now.Add(-time.Minute))), Failed, "ahead of"},
		{judgeVersions("v1", map[string]string{"node a": "v1"}), OK, "like all 1"},
		{judgeVersions("v1", map[string]string{"node a": "v2", "node b": "", "node c": "v1"}), Warning, "but node a has v2, node b names none"},
		{store(func(v *storeView) {}), OK, "that of the fleet"},
		{store(func(v *storeView) { v.leader = nil }), OK, "no gateway runs"},
		{store(func(v *storeView) { v.Identity = "b" }), Failed, "another store than /data"},
		{store(func(v *storeView) { v.Claim.Cluster = "other" }), Failed, "belongs to another cluster"},
		{store(func(v *storeView) { v.err = fmt.Errorf("read: %w", fs.ErrPermission) }), Failed, "let this user read"},
		{store(func(v *storeView) { v.err = errAny }), Failed, "--store"},
		{store(func(v *storeView) { v.writeErr = fs.ErrPermission }), Failed, "let this user write"},
		{store(func(v *storeView) { v.otherOwner = "ann" }), Warning, "sudo -u ann"},
		{store(func(v *storeView) { v.IsStore, v.IsEmpty = false, true }), Failed, "is it mounted?"},
		{store(func(v *storeView) { v.IsStore, v.IsEmpty, v.leader = false, true, nil }), OK, "makes it a store"},
		{store(func(v *storeView) { v.IsStore, v.leader = false, nil }), Warning, "holds other files"},
		{store(func(v *storeView) { v.err = fs.ErrNotExist }), Failed, "spelled right"},
		{store(func(v *storeView) { v.err, v.leader = fs.ErrNotExist, nil }), OK, "the first start creates it"},
		{store(func(v *storeView) { v.err, v.leader, v.writeErr = fs.ErrNotExist, nil, errAny }), Failed, "cannot be created: broken"},
		{store(func(v *storeView) { v.isFolder = false }), OK, "writing was not tried"},
		{judgePort(RoleGateway, port, nil, nil, false), OK, "free"},
		{held(port, true, "switchyard", "gateway"), OK, "by this gateway, switchyard gateway (process 7)"},
		{held(port, false, "switchyard", "--profile", "p", "gateway"), Warning, "fine if that is this gateway"},
		{held(port, false, "switchyard"), Warning, "fine if that is this gateway"},
		{held(port, false, "switchyard", "dev", "--gateway-address", "127.0.0.1:7280"), Failed, "held by switchyard dev (process 7)"},
		{held(port, false, "switchyard", "worker"), Failed, "held by switchyard worker"},
		{held(metrics, false, "switchyard", "gateway"), Warning, "so nothing is served there"},
		{held(port, false, "nginx"), Failed, "stop it"},
		{judgePort(RoleGateway, port, syscall.EADDRINUSE, nil, false), Failed, "ss -ltnp"},
		{held(metrics, false, "nginx"), Warning, "--metrics-address"},
		{judgePort(RoleGateway, port, syscall.EACCES, nil, false), Failed, "CAP_NET_BIND_SERVICE"},
		{judgePort(RoleGateway, port, syscall.EADDRNOTAVAIL, nil, false), Failed, "an address of this machine"},
		{judgePrivateFile(private, 0o600, nil), OK, ""},
		{judgePrivateFile(private, 0o640, nil), Failed, "chmod 600 /k"},
		{judgePrivateFile(shared, 0o640, nil), OK, ""},
		{judgePrivateFile(shared, 0o644, nil), Failed, "mode 0644"},
		{judgePrivateFile(shared, 0, fs.ErrPermission), Failed, "permission denied"},
		{judgeCertificate(Certificate{Flag: "--ca", Path: "/c"}, nil, errAny, now), Failed, "--ca /c: broken"},
		{judgeCertificate(Certificate{Flag: "--ca", Path: "/c"}, []byte("-"), nil, now), Failed, "no certificate in PEM"},
		{judgeCertificate(Certificate{Flag: "--tls-cert", Path: "/c", Reloads: true}, expiring, nil, now), Warning, "without a restart"},
		{judgeCertificate(Certificate{Flag: "--ca", Path: "/c"}, expiring, nil, now), Warning, "restart what reads the file"},
		{judgeOpenFiles(256), Failed, "LimitNOFILE"},
		{judgeOpenFiles(4096), Warning, "4096 files"},
		{judgeOpenFiles(1 << 20), OK, ""},
		{judgeDisk(folder, 100<<20, 100<<30), Failed, "0.1 GiB left of 100.0 GiB"},
		{judgeDisk(folder, 3<<30, 100<<30), Warning, "move the store"},
		{judgeDisk(folder, 10<<30, 100<<30), OK, ""},
		{judgeDisk(folder, 300<<20, 1<<30), OK, ""},
		{judgeCgroups("/sys/fs/cgroup", nil), OK, "/sys/fs/cgroup"},
		{judgeCgroups("", errors.Join(errAny, errAny)), Warning, "broken; broken"},
		{judgeEngine("unix:///run/docker.sock", "28.1", nil), OK, "28.1"},
		{judgeEngine("unix:///run/docker.sock", "", container.ErrNoEngine), Skipped, "Docker or Podman"},
		{judgeEngine("unix:///run/docker.sock", "", errAny), Failed, "systemctl start docker"},
		{judgeGPUs(0, "", errAny), Skipped, "no NVIDIA GPU"},
		{judgeGPUs(2, "", errAny), Failed, "has 2 NVIDIA GPUs"},
		{judgeGPUs(1, "\n", nil), Failed, "lists none"},
		{judgeGPUs(1, "GPU 0: NVIDIA L4 (UUID: GPU-1)\n", nil), OK, "shows 1 GPUs"},
		{judgeQEMU(qemu.Program{}, errAny, true), Skipped, "broken"},
		{judgeQEMU(qemu.Program{Version: "7.2"}, nil, true), Warning, "usermod -aG kvm"},
		{judgeQEMU(qemu.Program{Version: "7.2"}, nil, false), Warning, "without /dev/kvm"},
		{judgeQEMU(qemu.Program{Version: "7.2", KVM: true}, nil, true), OK, "with KVM"},
	} {
		if text := test.found.Detail + "\n" + test.found.Remedy; test.found.Result != test.want || !strings.Contains(text, test.says) {
			t.Errorf("%+v, want %s with %q", test.found, test.want, test.says)
		}
		if test.want == Warning && test.found.Remedy == "" {
			t.Errorf("%+v has no remedy", test.found)
		}
	}
}

func TestGPUsAreCountedOnTheBus(t *testing.T) {
	bus := fstest.MapFS{}
	for name, of := range map[string][2]string{"0000:01:00.0": {"0x10de", "0x030200"}, "0000:01:00.1": {"0x10de", "0x040300"}, "0000:00:02.0": {"0x8086", "0x030000"}} {
		bus["bus/pci/devices/"+name+"/vendor"] = &fstest.MapFile{Data: []byte(of[0] + "\n")}
		bus["bus/pci/devices/"+name+"/class"] = &fstest.MapFile{Data: []byte(of[1] + "\n")}
	}
	if n := countGPUs(bus); n != 1 {
		t.Errorf("%d GPUs, want 1", n)
	}
}

// newCertificate returns a certificate in PEM that is valid until a time.
func newCertificate(t *testing.T, until time.Time) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: until.Add(-30 * 24 * time.Hour), NotAfter: until}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
