package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// someKubeconfig has the contexts prod and staging, and no current one.
const someKubeconfig = `apiVersion: v1
kind: Config
clusters:
- {name: c, cluster: {server: "https://127.0.0.1:1"}}
users:
- {name: u, user: {token: secret}}
contexts:
- {name: staging, context: {cluster: c, user: u, namespace: batch}}
- {name: prod, context: {cluster: c, user: u}}
`

// write replaces a file atomically and returns its path.
func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	// A node that reads the file meanwhile finds the text of before.
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFlagOfAClusterSplitsFileAndContext(t *testing.T) {
	dir := t.TempDir()
	plain := write(t, filepath.Join(dir, "config"), "")
	colon := write(t, filepath.Join(dir, "a:b", "config"), "")
	whole := write(t, filepath.Join(dir, "config:dev"), "")
	for text, want := range map[string]Config{
		"prod=" + plain:                {"prod", plain, ""},
		"prod=" + plain + ":blue":      {"prod", plain, "blue"},
		"prod=" + plain + ":arn:a:b/c": {"prod", plain, "arn:a:b/c"},
		"prod=" + colon:                {"prod", colon, ""},
		"prod=" + colon + ":blue":      {"prod", colon, "blue"},
		"prod=" + whole:                {"prod", whole, ""},
		"prod=" + whole + ":blue":      {"prod", whole, "blue"},
		"prod=/none:blue":              {"prod", "/none", "blue"},
		"prod=in-cluster":              {"prod", InCluster, ""},
		"prod=in-cluster:blue":         {"prod", InCluster, "blue"},
	} {
		got, err := ParseFlag(text)
		if err != nil || got != want {
			t.Errorf("%s is %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "prod", "prod=", "=/etc/kubeconfig"} {
		if _, err := ParseFlag(text); err == nil || !strings.Contains(err.Error(), "write NAME=FILE") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestFlagOfAClusterMakesPathsAbsolute(t *testing.T) {
	t.Chdir(t.TempDir())
	got, err := ParseFlag("prod=kubeconfig")
	if err != nil || !filepath.IsAbs(got.File) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestOpenReportsEveryMistakeOfItsFlags(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "config"), someKubeconfig)
	broken := write(t, filepath.Join(dir, "broken"), "apiVersion: v1\nkind: Config\ncontexts: 7\n")
	empty := write(t, filepath.Join(dir, "empty"), "")
	lost := write(t, filepath.Join(dir, "lost"), strings.Replace(someKubeconfig, "{name: c, ", "{name: d, ", 1))
	current := write(t, filepath.Join(dir, "current"), someKubeconfig+"current-context: old\n")
	c, err := Open([]Config{
		{"prod", file, "prod"}, {"prod", file, "staging"}, {"-x", file, "prod"}, {"none", dir + "/none", ""}, {"broken", broken, ""}, {"empty", empty, ""},
		{"other", file, "pord"}, {"unset", file, ""}, {"old", current, ""}, {"lost", lost, "prod"}, {"pod", InCluster, ""}, {"podctx", InCluster, "a"},
	}, Options{})
	if err == nil {
		_ = c.Close()
		t.Fatal("no error")
	}
	got := strings.Split(strings.ReplaceAll(err.Error(), dir, "DIR"), "\n")
	for i, want := range []string{
		"--kube prod=DIR/config:staging: another --kube has the name prod; give each cluster a name of its own",
		"--kube -x=DIR/config:prod: the name of a cluster has at most 63 letters, digits, '.', '_' and '-', with a letter or digit first",
		"--kube none=DIR/none: kubeconfig DIR/none does not exist; specify a path such as ~/.kube/config",
		"--kube broken=DIR/broken: DIR/broken is not a valid kubeconfig: ",
		"--kube empty=DIR/empty: kubeconfig DIR/empty has no contexts; specify a complete kubeconfig",
		"--kube other=DIR/config:pord: kubeconfig DIR/config has no context pord (available: prod, staging)",
		"--kube unset=DIR/config: kubeconfig DIR/config has no current context; append a context to the file, as in unset=DIR/config:prod (available: prod, staging)",
		"--kube old=DIR/current: current context old does not exist in kubeconfig DIR/current; append a context to the file (available: prod, staging)",
		"--kube lost=DIR/lost:prod: context prod of DIR/lost: ",
		"--kube pod=in-cluster: this process does not run in a pod; specify a kubeconfig",
		"--kube podctx=in-cluster:a: in-cluster has no contexts; remove :a",
	} {
		if i >= len(got) || !strings.HasPrefix(got[i], want) {
			t.Fatalf("line %d of %q does not begin with %q", i, got, want)
		}
	}
}

func TestNoClustersAreReachedWithoutFlags(t *testing.T) {
	c, err := Open(nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	for _, c := range []*Clusters{c, nil} {
		if c.Get("default") != nil || len(c.Reachable()) > 0 || len(c.Names()) > 0 {
			t.Errorf("%v has clusters", c)
		}
		c.Check("default")
	}
	if err := (*Clusters)(nil).Close(); err != nil {
		t.Error(err)
	}
}
