package cli

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"switchyard/activities/election"
	"switchyard/activities/placement"
	"switchyard/cli/stack"
	"switchyard/workflows/definition"
	"switchyard/workflows/secretref"
)

func TestFleetFlags(t *testing.T) {
	t.Parallel()
	parse := func(args ...string) (cfg stack.Config, err error) {
		var fleet fleetFlags
		f := pflag.NewFlagSet("gateway", pflag.ContinueOnError)
		fleet.add(f)
		if err := f.Parse(args); err != nil {
			return cfg, err
		}
		return cfg, fleet.into(&cfg)
	}
	cfg, err := parse()
	if err != nil || cfg.Weights != nil || !reflect.DeepEqual(cfg.Defaults, definition.RunDefaults{PickupTimeout: 15 * time.Second, PickupTimeouts: map[string]time.Duration{"vps": time.Minute}}) {
		t.Errorf("without flags: %+v, %v", cfg.Defaults, err)
	}
	cfg, err = parse("--score-weights", "cpu=1,task=0", "--default-timeout", "2h", "--default-failure-policy", "halt", "--pickup-timeout", "5s,shell=30s", "--default-heartbeat-timeout", "5m", "--default-max-parallel", "8", "--suspicion-limit", "3",
		"--leader-lease", "30s", "--leader-renewal", "10s", "--cleanup-interval", "10m", "--max-lease", "1m")
	weights := placement.DefaultWeights()
	weights.CPU, weights.Task = 1, 0
	if err != nil || *cfg.Weights != weights || !reflect.DeepEqual(cfg.Defaults, definition.RunDefaults{
		Timeout: 2 * time.Hour, FailurePolicy: "halt", PickupTimeout: 5 * time.Second, HeartbeatTimeout: 5 * time.Minute, MaxLease: time.Minute, MaxParallel: 8, SuspicionLimit: 3,
		PickupTimeouts: map[string]time.Duration{"vps": time.Minute, "shell": 30 * time.Second},
	}) {
		t.Errorf("with flags: %+v, %+v, %v", cfg.Weights, cfg.Defaults, err)
	}
	if cfg.Leader != (election.Timing{Lease: 30 * time.Second, Renewal: 10 * time.Second}) || cfg.CleanupInterval != 10*time.Minute {
		t.Errorf("with flags: %+v, %v", cfg.Leader, cfg.CleanupInterval)
	}
	if cfg, err = parse("--order", "fifo", "--fair-half-life", "30m"); err != nil || !cfg.FIFO || cfg.FairHalfLife != 30*time.Minute {
		t.Errorf("order: %v, %s, %v", cfg.FIFO, cfg.FairHalfLife, err)
	}
	file, bad := write(t, "notify.yaml", "- { to: ops, on: [failed] }\n"), write(t, "bad.yaml", "- { to: ops, on: [failure] }\n")
	if cfg, err = parse("--notify-file", file); err != nil || len(cfg.Notify) != 1 || cfg.Notify[0].GetTo() != "ops" {
		t.Errorf("whom to tell: %v, %v", cfg.Notify, err)
	}
	if cfg, err = parse("--external-url", "https://yard.example.com:8443/"); err != nil || cfg.ExternalURL != "https://yard.example.com:8443" {
		t.Errorf("the URL of the page: %q, %v", cfg.ExternalURL, err)
	}
	for args, want := range map[string]string{
		"--score-weights=cpu":                         "key=value",
		"--notify-file=" + bad:                        "--notify-file " + bad + `:1:19: notify[0].on[0] is "failure"`,
		"--external-url=yard.example.com":             "such as https://yard.example.com",
		"--external-url=https://yard.example.com/ui":  "without a path",
		"--external-url=https://a:b@yard.example.com": "such as https://yard.example.com",
		"--notify-file=absent":                        "--notify-file: open absent: no such file",
		"--score-weights=ram=1":                       `no weight "ram"`,
		"--score-weights=cpu=-1":                      "not negative",
		"--score-weights=cpu=NaN":                     "not negative",
		"--score-weights=cpu=0,memory=0,disk=0,network=0,gpu=0,task=0,gaming=0": "at least one weight",
		"--order=random":                 "fair or fifo",
		"--fair-half-life=0":             "at least 1s",
		"--default-timeout=-1s":          "must not be negative",
		"--default-failure-policy=stop":  "continue or halt",
		"--default-heartbeat-timeout=2s": "5s to 1h",
		"--max-lease=14s":                "15s to 1h",
		"--max-lease=2h":                 "15s to 1h",
		"--pickup-timeout=10ms":          "at least 1s",
		"--pickup-timeout=vps=10ms":      "at least 1s",
		"--pickup-timeout=vms=10s":       `no task type "vms"`,
		"--pickup-timeout=approval=10s":  "runs on a node",
		"--pickup-timeout=soon":          "write a duration",
		"--default-max-parallel=-1":      "must not be negative",
		"--suspicion-limit=0":            "at least 1",
		"--leader-lease=1s":              "2s to 1m0s",
		"--leader-lease=2m":              "2s to 1m0s",
		"--leader-lease=2s":              "--leader-renewal 1s: it must be at most a third of --leader-lease, which is 2s",
		"--leader-renewal=5s":            "at most a third",
		"--leader-renewal=0":             "at least 100ms",
		"--cleanup-interval=0":           "at least 1m0s",
	} {
		if _, err := parse(args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; it should say %q", args, err, want)
		}
	}
}

func TestNodeFoldersAreChecked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	configs := func(args ...string) ([]stack.NodeConfig, error) {
		var n nodeFlags
		f := pflag.NewFlagSet("worker", pflag.ContinueOnError)
		n.addSome(f)
		if err := f.Parse(args); err != nil {
			return nil, err
		}
		return n.configs(1)
	}
	nodes, err := configs("--scratch-dir", dir, "--temp-dir", dir, "--mount", dir+":/models/:ro")
	if err != nil {
		t.Fatal(err)
	}
	mount := nodes[0].Containers.Mounts[0]
	if nodes[0].ScratchDir != dir || nodes[0].LocalTempDir != dir || mount.GetHostPath() != dir || mount.GetContainerPath() != "/models" || !mount.GetReadOnly() {
		t.Errorf("%+v, %v", nodes[0], mount)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("something is left in the scratch folder: %v, %v", left, err)
	}
	for _, test := range []struct {
		want string
		args []string
	}{
		{"must be a folder", []string{"--scratch-dir", file}},
		{"must be a folder", []string{"--scratch-dir", filepath.Join(dir, "none")}},
		{"--temp-dir", []string{"--temp-dir", filepath.Join(dir, "none")}},
		{"two absolute paths", []string{"--mount", dir}},
		{"two absolute paths", []string{"--mount", "models:/models"}},
		{"is not a folder", []string{"--mount", file + ":/models"}},
		{"no such file", []string{"--mount", filepath.Join(dir, "none") + ":/models"}},
		{"another --mount", []string{"--mount", dir + ":/models", "--mount", dir + ":/models/"}},
	} {
		if _, err := configs(test.args...); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: %v; it should say %q", test.args, err, test.want)
		}
	}
}

// TestAllowSecret checks that tasks on a worker may use only the secrets that it names, and all secrets in run and dev.
func TestAllowSecret(t *testing.T) {
	t.Parallel()
	configs := func(command string, args ...string) ([]stack.NodeConfig, error) {
		n := nodeFlags{count: 1, command: command}
		f := pflag.NewFlagSet("worker", pflag.ContinueOnError)
		n.addOne(f)
		n.addSecrets(f)
		if err := f.Parse(args); err != nil {
			return nil, err
		}
		return n.configs(1)
	}
	token := secretref.Reference{Kind: secretref.Env, Name: "DEPLOY_TOKEN"}
	for _, test := range []struct {
		command         string
		args            []string
		allowed, hidden bool
	}{
		{"", nil, false, false},
		{"", []string{"--allow-secret", "file:/run/secrets/*,env:DEPLOY_*"}, true, true},
		{"", []string{"--allow-secret", "env:OTHER", "--allow-secret", "env:DEPLOY_TOKEN"}, true, true},
		{"", []string{"--allow-secret", "env:OTHER"}, false, false},
		{"run", nil, true, false},
		{"dev", nil, true, false},
	} {
		nodes, err := configs(test.command, test.args...)
		if err != nil {
			t.Fatal(err)
		}
		if list := nodes[0].Secrets; list.Allows(token) != test.allowed || list.Hides(token.Name) != test.hidden {
			t.Errorf("%s %v: allowed %t, hidden %t", test.command, test.args, list.Allows(token), list.Hides(token.Name))
		}
	}
	for arg, want := range map[string]string{
		"DEPLOY_TOKEN": `--allow-secret "DEPLOY_TOKEN" is neither file:PATTERN nor env:PATTERN`,
		"env:*":        "covers PATH",
		"store:x":      "stored secrets need no entry",
	} {
		if _, err := configs("", "--allow-secret", arg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; it should say %q", arg, err, want)
		}
	}
}
