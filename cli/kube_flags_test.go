package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"switchyard/activities/executor/k8sjob/cluster"
	"switchyard/cli/exit"
	"switchyard/cli/stack"
)

func TestKubeFlags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, os.WriteFile(file, []byte(`apiVersion: v1
kind: Config
current-context: blue
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: blue, context: {cluster: c}}, {name: green, context: {cluster: c}}]
`), 0o600))
	parse := func(args ...string) (stack.KubeConfig, error) {
		var k kubeFlags
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		k.add(f)
		must(t, f.Parse(args))
		return k.config()
	}
	for _, test := range []struct {
		args []string
		want stack.KubeConfig
	}{
		{nil, stack.KubeConfig{StartTimeout: 5 * time.Minute, SweepInterval: 2 * time.Minute}},
		{
			[]string{"--kube", "prod=" + file, "--kube", "staging=" + file + ":green", "--kube-helper-image", "registry.example.com/busybox:1.37", "--kube-start-timeout", "90s", "--kube-sweep-interval", "10m"},
			stack.KubeConfig{
				Clusters:    []cluster.Config{{Name: "prod", File: file}, {Name: "staging", File: file, Context: "green"}},
				HelperImage: "registry.example.com/busybox:1.37", StartTimeout: 90 * time.Second, SweepInterval: 10 * time.Minute,
			},
		},
	} {
		got, err := parse(test.args...)
		must(t, err)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%v: %s", test.args, diff)
		}
	}
	for want, args := range map[string][]string{
		"write NAME=FILE":                      {"--kube", "prod"},
		"x does not exist; specify a path":     {"--kube", "prod=" + file + "x"},
		"has no context red (available: blue,": {"--kube", "prod=" + file + ":red"},
		"another --kube has the name prod":     {"--kube", "prod=" + file, "--kube", "prod=" + file + ":green"},
		"the name of a cluster has at most":    {"--kube", "pr od=" + file},
		"--kube-helper-image A b: write":       {"--kube-helper-image", "A b"},
		"timeout 10ms: it must be at least":    {"--kube-start-timeout", "10ms"},
		"interval 1ms: it must be at least":    {"--kube-sweep-interval", "1ms"},
	} {
		if _, err := parse(args...); exit.CodeOf(t.Context(), err) != exit.CodeUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v; it should say %q", args, err, want)
		}
	}
}

func TestKubeFlagNamesAreComplete(t *testing.T) {
	var k kubeFlags
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	k.add(f)
	var names []string
	f.VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	if diff := cmp.Diff(kubeFlagNames, names); diff != "" {
		t.Error(diff)
	}
}
