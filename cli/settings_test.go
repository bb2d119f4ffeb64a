package cli

import (
	"fmt"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"switchyard/cli/config"
	"switchyard/cli/exit"
	"switchyard/cli/output"
	"switchyard/cli/stack"
)

func TestFlagsOverEnvironmentOverDefaults(t *testing.T) {
	for _, test := range []struct {
		name string
		env  map[string]string
		args []string
		want string
	}{
		{"default", nil, nil, "nodes 1, labels [], logs false, output text"},
		{
			"environment",
			map[string]string{"SWITCHYARD_NODES": "3", "SWITCHYARD_LABEL": "a,b", "SWITCHYARD_LOGS": "true", "SWITCHYARD_OUTPUT_FORMAT": "json"},
			nil, "nodes 3, labels [a b], logs true, output json",
		},
		{
			"flags",
			map[string]string{"SWITCHYARD_NODES": "3", "SWITCHYARD_LABEL": "a,b", "SWITCHYARD_LOGS": "true"},
			[]string{"--nodes", "2", "--label", "c,d", "--label", "e", "--logs=false"}, "nodes 2, labels [c d e], logs false, output text",
		},
		{
			"what a task finds", map[string]string{"SWITCHYARD_OUTPUT": "/tmp/output", "SWITCHYARD_INPUT": "/tmp/input", "SWITCHYARD_NODES": ""},
			nil, "nodes 1, labels [], logs false, output text",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got string
			cmd := &cobra.Command{PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
				_, err := config.Apply(cmd, func(name string) string { return test.env[name] })
				return err
			}}
			nodes, logs := nodeFlags{}, false
			nodes.addSome(cmd.Flags())
			cmd.Flags().BoolVar(&logs, "logs", false, "")
			cmd.Flags().StringArray("input", nil, "")
			format := output.FormatFlag(cmd, output.Text, output.JSON)
			cmd.RunE = func(*cobra.Command, []string) error {
				got = fmt.Sprintf("nodes %d, labels %v, logs %t, output %s", nodes.count, nodes.labels, logs, format.Value)
				return nil
			}
			cmd.SetArgs(append([]string{}, test.args...))
			must(t, cmd.Execute())
			if got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

func TestBadEnvironment(t *testing.T) {
	runWith(t, map[string]string{"SWITCHYARD_NODES": "many"}, hello, "run", "-").ends(t, exit.CodeUsage, `SWITCHYARD_NODES: "many" is not a valid value for --nodes`)
}

// TestEachVariableSetsOneFlag checks that each variable sets only one flag, and that none has a name that tasks find in their
// environment.
func TestEachVariableSetsOneFlag(t *testing.T) {
	owned := map[string]bool{}
	for _, name := range strings.Fields("RUN_ID WORKFLOW TASK TASK_ID ATTEMPT NODE INDEX COUNT ITEM INPUT OUTPUT CONTEXT_UPDATE CHECKPOINT LOCAL_TEMP_DIR CLAIM") {
		owned["SWITCHYARD_"+name] = true
	}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if owned[config.Variable(f.Name)] {
				t.Errorf("--%s of %s is read from %s, which tasks find with another meaning", f.Name, cmd.CommandPath(), config.Variable(f.Name))
			}
		})
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(newRoot(&system{}))
}

func TestNodeNames(t *testing.T) {
	for _, test := range []struct {
		flags nodeFlags
		want  string
	}{
		{nodeFlags{count: 1}, "[local]"},
		{nodeFlags{count: 3}, "[local-1 local-2 local-3]"},
		{nodeFlags{count: 1, name: "gpu.1"}, "[gpu.1]"},
		{nodeFlags{count: 2, name: "gpu"}, "[gpu-1 gpu-2]"},
		{nodeFlags{}, "[]"},
	} {
		nodes, err := test.flags.configs(0)
		must(t, err)
		names := []string{}
		for _, n := range nodes {
			names = append(names, n.Name)
		}
		if got := fmt.Sprint(names); got != test.want {
			t.Errorf("%+v are %s, want %s", test.flags, got, test.want)
		}
	}
}

func TestPassEnvIsRepeatedAndSplit(t *testing.T) {
	parse := func(args ...string) ([]stack.NodeConfig, error) {
		nodes, flags := nodeFlags{}, pflag.NewFlagSet("worker", pflag.ContinueOnError)
		nodes.addSome(flags)
		must(t, flags.Parse(args))
		return nodes.configs(1)
	}
	nodes, err := parse("--pass-env", "SSH_AUTH_SOCK,AWS_*", "--pass-env", "CI")
	must(t, err)
	if got := fmt.Sprint(nodes[0].PassEnv); got != "[SSH_AUTH_SOCK AWS_* CI]" {
		t.Errorf("it passes on %s", got)
	}
	if _, err := parse("--pass-env", "SWITCHYARD_TOKEN"); exit.CodeOf(t.Context(), err) != exit.CodeUsage || !strings.Contains(err.Error(), "set it in the task's env") {
		t.Errorf("error %v", err)
	}
}

func TestDataFolder(t *testing.T) {
	t.Setenv("HOME", "/home/ann")
	if got, err := dataFolder(func(name string) string { return map[string]string{"XDG_DATA_HOME": "/data"}[name] }); err != nil || got != "/data/switchyard" {
		t.Errorf("%q, %v", got, err)
	}
	got, err := dataFolder(func(string) string { return "relative" })
	if err != nil || got != "/home/ann/.local/share/switchyard" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestVersions(t *testing.T) {
	info := &debug.BuildInfo{
		GoVersion: "go1.26.8",
		Main:      debug.Module{Version: "(devel)"},
		Deps: []*debug.Module{
			{Path: "go.temporal.io/sdk", Version: "v1.50.0"},
			{Path: "go.temporal.io/server", Version: "v1.0.0", Replace: &debug.Module{Version: "v1.32.1"}},
		},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef0123"}, {Key: "vcs.modified", Value: "true"}},
	}
	got := versions(info)
	for _, want := range []string{"devel-0123456789ab+dirty\n", "0123456789abcdef0123\n", "go1.26.8", "v1.50.0\n", "v1.32.1\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	release, commit = "0.1.0", "fedcba9876543210fedc"
	defer func() { release, commit = "", "" }()
	if got := versions(info); !strings.Contains(got, " 0.1.0\n") || !strings.Contains(got, " fedcba9876543210fedc\n") {
		t.Errorf("a release prints\n%s", got)
	}
}
