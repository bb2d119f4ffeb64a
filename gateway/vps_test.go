package gateway

import (
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

func TestMachineLifecycleOverREST(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.config.SSHPort, f.config.SSHHost = 7222, "sy.example.com"
	f.server.http.Handler = f.Handler()
	body := `{"name": "rest-desk", "image": "ubuntu:24.04", "idleTimeout": "2h", "mounts": [{"hostPath": "/srv", "containerPath": "/srv"}], "resources": {"cores": 2}, "idempotencyKey": "desk"}`
	got := f.rest(t, "POST", "/v1/vps", body, "Content-Type", jsonHeader)
	id, _ := got.value["id"].(string)
	if got.status != http.StatusCreated || !strings.HasPrefix(id, "rest-desk-") || got.value["task"] != "vps" || got.header.Get("Location") != "/v1/vps/"+id || got.value["privateKey"] != "" {
		t.Fatalf("%d %s %v", got.status, got.text, got.header)
	}
	terminate(t, id)
	if again := f.rest(t, "POST", "/v1/vps", body, "Content-Type", jsonHeader); again.status != http.StatusOK || again.value["id"] != id || again.value["existed"] != true {
		t.Errorf("the same again: %d %s", again.status, again.text)
	}
	set(t, id, "vps", 1, &v1.Task{Type: "vps", State: "running", Node: "n1", StartedAt: timestamppb.Now()})
	one := f.rest(t, "GET", "/v1/vps/"+id, "")
	if one.value["status"] != "running" || one.value["node"] != "n1" || one.value["image"] != "ubuntu:24.04" || one.value["sshCommand"] != "ssh -p 7222 vps."+id+"@sy.example.com" || one.value["completedAt"] != nil {
		t.Errorf("it is %s", one.text)
	}
	eventually(t, "it is listed", func() bool {
		list := f.rest(t, "GET", "/v1/vps?name=rest-desk", "")
		items, _ := list.value["items"].([]any)
		return list.status == http.StatusOK && len(items) == 1 && items[0].(map[string]any)["image"] == "ubuntu:24.04"
	})
	set(t, id, "vps", 1, &v1.Task{Type: "vps", State: "pending"})
	killed := f.rest(t, "POST", "/v1/vps/"+id+"/kill", `{"reason": "enough"}`, "Content-Type", jsonHeader)
	if killed.status != http.StatusOK || killed.value["id"] != id || killed.value["task"] != "vps" {
		t.Errorf("%d %s", killed.status, killed.text)
	}
	if one := f.rest(t, "GET", "/v1/vps/"+id, ""); one.value["status"] != "killed" || one.value["error"] != "enough" {
		t.Errorf("it is %s", one.text)
	}
	if none := f.rest(t, "GET", "/v1/vps/"+f.submit(t, "no-machine"), ""); none.status != http.StatusNotFound || !strings.Contains(none.message(), "no machine") {
		t.Errorf("a run without one: %d %s", none.status, none.text)
	}
}

// TestPrivateKeyIsOnlyInTheResponse generates a key pair, and searches the run, the audit and the store for the
// private key.
func TestPrivateKeyIsOnlyInTheResponse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := startLocked(t, dir, func(c *Config) { c.ApproveUserRuns = true })
	secret, _ := f.token(t, "uma", v1.RoleUser)
	other, _ := f.token(t, "otto", v1.RoleUser)
	root, _ := f.token(t, "root", v1.RoleAdmin)
	res := do(t, dialService(t, f, switchyardv1connect.NewVpsServiceClient, secret).CreateVps, &v1.CreateVpsRequest{Name: "paired", Image: "ubuntu", GenerateKey: true})
	id := res.GetId()
	terminate(t, id)
	lines := strings.Split(strings.TrimSpace(res.GetPrivateKey()), "\n")
	if len(lines) < 4 || !strings.HasPrefix(res.GetPublicKey(), "ssh-ed25519 ") {
		t.Fatalf("the pair is %v", res.GetPublicKey())
	}
	body := lines[len(lines)-3]
	in := f.inputOf(t, id)
	if !in.GetNeedsApproval() || in.GetBy() != "uma" || strings.Contains(in.String(), body) {
		t.Errorf("the run is started with %v", in)
	}
	audit := f.auditEntries(t, root, &v1.ListAuditEntriesRequest{What: "CreateVps"})
	if len(audit) != 1 || audit[0].GetObjects()["run"] != id || strings.Contains(audit[0].String(), body) {
		t.Errorf("the audit has %v", audit)
	}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), body) {
			t.Errorf("%s has the private key", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	others := dialService(t, f, switchyardv1connect.NewVpsServiceClient, other)
	refused(t, "the machine of another", others.KillVps, &v1.KillVpsRequest{Id: id}, connect.CodeNotFound)
	if list := answer(t, others.ListVps, &v1.ListVpsRequest{}).GetItems(); len(list) != 0 {
		t.Errorf("machines of another are listed: %v", list)
	}
}
