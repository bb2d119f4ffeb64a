package cli

import (
	"strings"
	"testing"

	"switchyard/cli/exit"
	v1 "switchyard/proto/switchyard/v1"
)

// TestConfigOfCommand checks that a real command takes its settings from a file.
func TestConfigOfCommand(t *testing.T) {
	f := fake(t)
	path := write(t, "c.yaml", "gateway: "+f.url+"\nruns: { list: { state: failed, limit: 7 } }\ndev: { nodes: 3, uiPort: 0 }\n")
	run(t, "runs", "list", "--config", path, "--limit", "8").ends(t, 0, "")
	if req := requests[*v1.ListRunsRequest](f)[0]; req.GetState() != "failed" || req.GetPageSize() != 8 {
		t.Errorf("asked for %v", req)
	}
}

func TestBadConfigFileOfCommand(t *testing.T) {
	got := run(t, "runs", "list", "--config", "/nowhere.yaml")
	if got.code != exit.CodeUsage || !strings.Contains(got.stderr, "no such file") {
		t.Errorf("%+v", got)
	}
	path := write(t, "c.yaml", "limitt: 5\n")
	got = runWith(t, map[string]string{"SWITCHYARD_CONFIG": path}, "", "runs", "list")
	if got.code != exit.CodeUsage || got.stderr != path+":1:1: there is no setting \"limitt\"\n  did you mean limit?\n" {
		t.Errorf("%+v", got)
	}
}

// TestProfiles checks that commands use the settings of a profile and the token that it names.
func TestProfiles(t *testing.T) {
	f := fake(t)
	url, registry := lockedGateway(t)
	secret, _, err := registry.Create(t.Context(), &v1.Token{Name: "ann", Role: v1.RoleUser}, 0)
	must(t, err)
	token := write(t, "token", secret)
	path := write(t, "c.yaml", "gateway: "+f.url+"\nruns: { list: { limit: 7 } }\nprofiles:\n  prod: { gateway: '"+url+"', tokenFile: "+token+" }\n  test: { runs: { list: { limit: 9 } } }\n")
	env := map[string]string{"SWITCHYARD_CONFIG": path, "HOME": t.TempDir()}
	if got := runWith(t, env, "", "whoami", "--profile", "prod"); got.code != exit.CodeDone || got.stdout != "ann, role user\n" {
		t.Errorf("%+v", got)
	}
	for _, args := range [][]string{{"runs", "list"}, {"runs", "list", "--profile", "test"}} {
		runWith(t, env, "", args...).ends(t, exit.CodeDone, "")
	}
	if asked := requests[*v1.ListRunsRequest](f); asked[0].GetPageSize() != 7 || asked[1].GetPageSize() != 9 {
		t.Errorf("asked for %v", asked)
	}
	env["SWITCHYARD_PROFILE"] = "prod"
	if got := runWith(t, env, "", "whoami"); got.stdout != "ann, role user\n" {
		t.Errorf("by the environment: %+v", got)
	}
	// The token of a profile is sent only to the gateway of that profile.
	runWith(t, env, "", "whoami", "--gateway", strings.Replace(url, "127.0.0.1", "localhost", 1)).ends(t, exit.CodeNotAllowed, "")
	env["SWITCHYARD_PROFILE"] = "prood"
	runWith(t, env, "", "whoami").ends(t, exit.CodeUsage, "did you mean prod?")
	run(t, "whoami", "--profile", "prod").ends(t, exit.CodeUsage, "SWITCHYARD_CONFIG")
	env["SWITCHYARD_PROFILE"], env["SWITCHYARD_CONFIG"] = "", write(t, "c.yaml", "profiles:\n  prod: { gatewai: x }\n  test: 5\n")
	if got := runWith(t, env, "", "whoami"); got.code != exit.CodeUsage || !strings.Contains(got.stderr, "did you mean gateway?") || !strings.Contains(got.stderr, "profile test must map") {
		t.Errorf("%+v", got)
	}
}
