package config

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// settled runs a command of a small command tree with a configuration file, and returns its flags and their origins.
func settled(t *testing.T, text string, env map[string]string, args ...string) (values, from string, err error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var found Origins
	root := &cobra.Command{Use: "switchyard", SilenceErrors: true, SilenceUsage: true, PersistentPreRunE: func(cmd *cobra.Command, _ []string) (err error) {
		found, err = Apply(cmd, func(name string) string { return env[name] })
		return err
	}}
	root.PersistentFlags().String(Flag, path, "")
	show := func(cmd *cobra.Command, _ []string) error {
		var all []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Name != Flag && f.Name != "help" {
				all = append(all, f.Name+"="+f.Value.String())
			}
		})
		values = strings.Join(all, " ")
		all = nil
		for _, name := range slices.Sorted(maps.Keys(found)) {
			all = append(all, name+" "+strings.ReplaceAll(found[name], path, "c.yaml"))
		}
		from = strings.Join(all, ", ")
		return nil
	}
	gateway := &cobra.Command{Use: "gateway", RunE: show}
	gateway.Flags().String("address", "here", "")
	gateway.Flags().String("role", "auto", "")
	runs := &cobra.Command{Use: "runs"}
	list := &cobra.Command{Use: "list", RunE: show}
	list.Flags().String("gateway", "", "")
	list.Flags().Int("limit", 100, "")
	list.Flags().StringSlice("label", nil, "")
	list.Flags().Int("max-parallel", 0, "")
	runs.AddCommand(list)
	root.AddCommand(gateway, runs)
	root.SetArgs(append([]string{}, args...))
	err = root.Execute()
	if err != nil {
		err = fmt.Errorf("%s", strings.ReplaceAll(err.Error(), path, "c.yaml"))
	}
	return values, from, err
}

// TestConfigFile checks that flags override the environment, which overrides the file, where sections override
// top-level settings, which override defaults.
func TestConfigFile(t *testing.T) {
	const file = `gateway: http://yard:7280   # a flag, and below a command
maxParallel: 3
label: [a, b]
gateway: { address: "there:1" }
runs:
  limit: 7
  label: { x: 1, y: z }
  list:
    limit: 9
`
	list := []string{"runs", "list"}
	for _, test := range []struct {
		name, file, values, origins string
		env                         map[string]string
		args                        []string
	}{
		{"nothing", "", "gateway= label=[] limit=100 max-parallel=0", "", nil, list},
		{"comments", "# nothing\n", "gateway= label=[] limit=100 max-parallel=0", "", nil, list},
		{"a value left out", "limit:\n", "gateway= label=[] limit=100 max-parallel=0", "", nil, list},
		{
			"a file", file, "gateway=http://yard:7280 label=[x=1,y=z] limit=9 max-parallel=3",
			"gateway c.yaml:1, label c.yaml:7, limit c.yaml:9, max-parallel c.yaml:2", nil, list,
		},
		{
			"another command", file, "address=there:1 role=auto", "address c.yaml:4", nil, []string{"gateway"},
		},
		{
			"the environment", file, "gateway=http://yard:7280 label=[e,f] limit=9 max-parallel=5",
			"gateway c.yaml:1, label SWITCHYARD_LABEL, limit c.yaml:9, max-parallel SWITCHYARD_MAX_PARALLEL",
			map[string]string{"SWITCHYARD_LABEL": "e,f", "SWITCHYARD_MAX_PARALLEL": "5"}, list,
		},
		{
			"flags", file, "gateway=http://yard:7280 label=[g] limit=11 max-parallel=5",
			"gateway c.yaml:1, label --label, limit --limit, max-parallel SWITCHYARD_MAX_PARALLEL",
			map[string]string{"SWITCHYARD_LABEL": "e,f", "SWITCHYARD_MAX_PARALLEL": "5"}, append(list, "--label", "g", "--limit", "11"),
		},
		{"an alias", "limit: &n 5\nmax-parallel: *n\n", "gateway= label=[] limit=5 max-parallel=5", "limit c.yaml:1, max-parallel c.yaml:2", nil, list},
		{"one of a list", "label: \"a,b\"\n", "gateway= label=[a,b] limit=100 max-parallel=0", "label c.yaml:1", nil, list},
	} {
		t.Run(test.name, func(t *testing.T) {
			values, origins, err := settled(t, test.file, test.env, test.args...)
			if err != nil || values != test.values || origins != test.origins {
				t.Errorf("got %s from %s, %v", values, origins, err)
			}
		})
	}
}

func TestBadConfigFile(t *testing.T) {
	for _, test := range []struct{ name, file, want string }{
		{"unknown key", "limit: 1\nmaxParralel: 2\n", "c.yaml:2:1: there is no setting \"maxParralel\"\n  did you mean max-parallel?"},
		{"unknown key of a section", "runs:\n  list:\n    adress: x\n", `c.yaml:3:5: there is no setting "adress"`},
		{"setting of another command in a section", "runs: { address: x }\n", `c.yaml:1:9: there is no setting "address"`},
		{"unknown section", "rnus: { limit: 1 }\n", "did you mean runs?"},
		{"every fault at once", "a1: 1\nb2: 2\n", "c.yaml:1:1: there is no setting \"a1\"\nc.yaml:2:1: there is no setting \"b2\""},
		{"twice", "limit: 1\nmax-parallel: 1\nmaxParallel: 2\n", "c.yaml:3:1: max-parallel is set twice"},
		{"section twice", "runs: {}\nruns: {}\n", "c.yaml:2:1: section runs appears twice"},
		{"itself", "config: other.yaml\n", `c.yaml:1:1: there is no setting "config"`},
		{"no number", "\nlimit: many\n", `c.yaml:2:8: not a valid value for --limit`},
		{"a list for one", "limit: [1]\n", `c.yaml:1:8: not a valid value for --limit: it takes one value`},
		{"a deep list", "label: [[a]]\n", `c.yaml:1:8: not a valid value for --label: its items must be plain values`},
		{"a deep mapping", "label: { a: [b] }\n", `its entries must be plain values`},
		{"no mapping", "- limit\n", `c.yaml:1:1: settings must map`},
		{"no YAML", "limit: 'a\n", `c.yaml: `},
		{"too long", strings.Repeat("#", maxFile+1), `more than`},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, _, err := settled(t, test.file, nil, "runs", "list")
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v\nwant %s", err, test.want)
			}
		})
	}
}

func FuzzConfigFile(f *testing.F) {
	for _, seed := range []string{"limit: 1", "runs: {list: {limit: 2}}", "a: &a [*a]", "- 1", "? [a]\n: b", "<<: {a: b}", "label: {a: b}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, _, err := settled(t, text, nil, "runs", "list")
		_ = err // it only has to return
	})
}

func TestKebab(t *testing.T) {
	for key, want := range map[string]string{"maxParallel": "max-parallel", "max-parallel": "max-parallel", "gateway": "gateway", "uiPort": "ui-port", "": "", "X": "x"} {
		if got := kebab(key); got != want {
			t.Errorf("%s is %s, not %s", key, got, want)
		}
	}
}
