package cli

import (
	"strings"
	"testing"

	"switchyard/cli/exit"
)

// TestConfigOfCommand has a real command take its settings from a file.
func TestConfigOfCommand(t *testing.T) {
	f := fake(t)
	path := write(t, "c.yaml", "gateway: "+f.url+"\nruns: { list: { state: failed, limit: 7 } }\ndev: { nodes: 3, uiPort: 0 }\n")
	if got := run(t, "runs", "list", "--config", path, "--limit", "8"); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	if req := f.listed[0]; req.GetState() != "failed" || req.GetPageSize() != 8 {
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
