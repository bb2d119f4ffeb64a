package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchyard/cli/exit"
)

func TestListOfGatewaysIsChecked(t *testing.T) {
	settings := filepath.Join(t.TempDir(), "settings.yaml")
	must(t, os.WriteFile(settings, []byte("runs:\n  gateway: [http://a, https://b]\n"), 0o600))
	for _, test := range []struct {
		says string
		env  map[string]string
		args []string
	}{
		{`"--gateway" flag: the list of gateways is empty`, nil, []string{"--gateway", ""}},
		{"--gateway: the list of gateways is empty", nil, []string{"--gateway", ","}},
		{"--gateway: the list of gateways has an empty entry", nil, []string{"--gateway", "http://a,"}},
		{`--gateway: "ftp://b" is not a gateway URL such as http://host:7280`, nil, []string{"--gateway", "http://a", "--gateway", "ftp://b"}},
		{"--gateway: gateway http://a appears twice", nil, []string{"--gateway", "http://a", "--gateway", "http://a"}},
		{"SWITCHYARD_GATEWAY: http://a and https://b mix http and https", map[string]string{"SWITCHYARD_GATEWAY": "http://a,https://b"}, nil},
		{settings + ":2: http://a and https://b mix http and https", nil, []string{"--config", settings}},
	} {
		runWith(t, test.env, "", append([]string{"runs", "list"}, test.args...)...).ends(t, exit.CodeUsage, test.says)
	}
}

func TestCommandsUseAnyGateway(t *testing.T) {
	url, registry := lockedGateway(t)
	first, err := registry.CreateFirst(t.Context())
	must(t, err)
	const dead, deader = "http://127.0.0.1:1", "http://127.0.0.1:2"
	env := map[string]string{"HOME": t.TempDir(), "SWITCHYARD_GATEWAY": dead + "," + url}
	runWith(t, env, first+"\n", "login").ends(t, exit.CodeDone, "logged in to "+dead+","+url+" as admin")
	for _, args := range [][]string{{}, {"--gateway", url}, {"--gateway", deader, "--gateway", url}} {
		runWith(t, env, "", append([]string{"whoami"}, args...)...).prints(t, exit.CodeDone, "admin, role admin")
	}
	got := runWith(t, env, "", "whoami", "--gateway", dead+","+deader)
	got.ends(t, exit.CodeSystem, "none of 2 gateways can be used: "+dead+": dial tcp")
	if !strings.Contains(got.stderr, "; "+deader+": dial tcp") || !strings.Contains(got.stderr, "SWITCHYARD_GATEWAY") {
		t.Error(got.stderr)
	}
	runWith(t, env, "", "logout").ends(t, exit.CodeDone, "")
	runWith(t, env, "", "whoami", "--gateway", url).ends(t, exit.CodeNotAllowed, "switchyard login")
}
