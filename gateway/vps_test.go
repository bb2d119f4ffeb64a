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

// vps returns a client of VpsService with a token.
func (f *fixture) vps(t *testing.T, token string) switchyardv1connect.VpsServiceClient {
	t.Helper()
	return switchyardv1connect.NewVpsServiceClient(f.httpClient(t), f.server.URL(), connect.WithInterceptors(bearer(token)))
}

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
	for field, want := range map[string]any{
		"id": id, "name": "rest-desk", "task": "vps", "status": "running", "node": "n1", "image": "ubuntu:24.04", "vpsBackend": "docker", "vmImage": "", "vmDiskSize": "",
		"vmIp": "", "containerName": "", "sshHost": "sy.example.com", "sshPort": 7222.0, "sshUser": "vps." + id, "sshCommand": "ssh -p 7222 vps." + id + "@sy.example.com", "idleTimeout": "2h",
	} {
		if one.value[field] != want {
			t.Errorf("%s is %v, want %v", field, one.value[field], want)
		}
	}
	if ended, there := one.value["completedAt"]; there && ended != nil {
		t.Errorf("one that runs has ended: %s", one.text)
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

// TestBadMachineNamesFieldsOfTheRequest checks that errors name the fields of the request.
func TestBadMachineNamesFieldsOfTheRequest(t *testing.T) {
	t.Parallel()
	f := start(t)
	for name, c := range map[string]struct{ body, path, message string }{
		"no image":      {`{}`, "image", "image is missing"},
		"image":         {`{"image": "Ubuntu"}`, "image", "not a valid image name"},
		"backend":       {`{"image": "a", "backend": "xen"}`, "backend", "docker or qemu"},
		"image of a VM": {`{"image": "a", "backend": "qemu", "vmImage": "a"}`, "image", "is for containers"},
		"key":           {`{"image": "a", "sshPublicKey": "hunter2"}`, "sshPublicKey", "not a public key"},
		"a private key": {`{"image": "a", "sshPublicKey": "-----BEGIN OPENSSH PRIVATE KEY-----\nhunter2"}`, "sshPublicKey", "contains a private key"},
		"mount":         {`{"image": "a", "mounts": [{"hostPath": "x", "containerPath": "/x"}]}`, "mounts[0].hostPath", "absolute"},
		"half a mount":  {`{"image": "a", "mounts": [{"hostPath": "/x"}]}`, "mounts[0].containerPath", "missing"},
		"idle time-out": {`{"image": "a", "idleTimeout": "soon"}`, "idleTimeout", "not a duration"},
		"node":          {`{"image": "a", "constraints": {"targetNode": "A!"}}`, "constraints.targetNode", "A!"},
		"name":          {`{"image": "a", "name": "a b"}`, "name", "name"},
		"unknown field": {`{"image": "a", "retry": {"maxRetries": 1}}`, "", "retry"},
	} {
		t.Run(name, func(t *testing.T) {
			got := f.rest(t, "POST", "/v1/vps", c.body, "Content-Type", jsonHeader)
			if got.status != http.StatusBadRequest || !strings.Contains(got.message(), c.message) || strings.Contains(got.text, "tasks.") || strings.Contains(got.text, "hunter2") {
				t.Errorf("%d %s", got.status, got.text)
			}
			if c.path != "" && !strings.Contains(strings.ReplaceAll(got.text, " ", ""), `"path":"`+c.path+`"`) {
				t.Errorf("it does not name %s: %s", c.path, got.text)
			}
		})
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
	res, err := f.vps(t, secret).CreateVps(t.Context(), connect.NewRequest(&v1.CreateVpsRequest{Name: "paired", Image: "ubuntu", GenerateKey: true}))
	if err != nil {
		t.Fatal(err)
	}
	id := res.Msg.GetId()
	terminate(t, id)
	lines := strings.Split(strings.TrimSpace(res.Msg.GetPrivateKey()), "\n")
	if len(lines) < 4 || !strings.HasPrefix(res.Msg.GetPublicKey(), "ssh-ed25519 ") {
		t.Fatalf("the pair is %v", res.Msg.GetPublicKey())
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
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
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
	_, err = f.vps(t, other).KillVps(t.Context(), connect.NewRequest(&v1.KillVpsRequest{Id: id}))
	wantCode(t, "the machine of another", err, connect.CodeNotFound)
	if list, err := f.vps(t, other).ListVps(t.Context(), connect.NewRequest(&v1.ListVpsRequest{})); err != nil || len(list.Msg.GetItems()) != 0 {
		t.Errorf("machines of another are listed: %v, %v", list, err)
	}
}
