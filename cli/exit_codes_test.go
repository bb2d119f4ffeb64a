package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"switchyard/cli/exit"
	"switchyard/cli/exportfile"
	v1 "switchyard/proto/switchyard/v1"
)

// clientArguments returns the arguments with which a command calls its gateway, for those whose usage line in lower case holds no
// valid ones.
func clientArguments(t *testing.T) map[string][]string {
	t.Helper()
	exported := exportFile(t, exportfile.File{Items: []*v1.ExportedItem{exportedToken("1")}})
	hook := write(t, "hook.yaml", "url: https://hooks.example.com\nsecret: store:hook\n")
	def, key := write(t, "f.yaml", hello), write(t, "id.pub", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEiWvIYvCJDxLpQ4TtdfmPCHTAUtPOuYbyvVXMA8FEAz ann")
	return map[string][]string{
		"run": {def}, "submit": {def}, "validate": {"--gateway", def}, "workflows put": {def}, "apply": {"-f", def}, "import": {exported}, "keys add": {key}, "vps create": {"--image", "debian:12", "--ssh-key", key},
		"secrets set": {"name"}, "notifications put": {"name", "--type", "webhook", "--from-file", hook}, "tokens create": {"--name", "ann", "--role", "user"}, "env create": {"name", "--from", "debian:12"},
		"runs cp": {"run:task:file", filepath.Join(t.TempDir(), "file")}, "runs port-forward": {"run", "task", "8080"}, "runs exec": {"run", "task", "--", "true"},
		"dlq retry": {"run", "task"}, "dlq purge": {"run", "task"}, "quotas set": {"name", "--cores", "1"}, "shares set": {"name", "--weight", "2"}, "schedules backfill": {"name", "--from", "2026-03-01T00:00:00Z", "--to", "2026-03-02T00:00:00Z"},
	}
}

// TestEveryCommandHasTheExitCodeOfARefusal checks for every command that calls a gateway which code it ends with if the gateway
// refuses the call.
func TestEveryCommandHasTheExitCodeOfARefusal(t *testing.T) {
	t.Parallel()
	arguments := clientArguments(t)
	var commands []*cobra.Command
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		// The first two commands call no gateway before they have checked something else. A refusal is one finding of the third.
		if name := c.Name(); !c.HasSubCommands() && c.Flags().Lookup(gatewayFlagName) != nil && name != "logout" && name != "mcp" && name != "doctor" {
			commands = append(commands, c)
		}
	}
	walk(newRoot(&system{}))
	for code, want := range map[connect.Code]int{
		connect.CodePermissionDenied: exit.CodeNotAllowed, connect.CodeUnauthenticated: exit.CodeNotAllowed,
		connect.CodeNotFound: exit.CodeUsage, connect.CodeInvalidArgument: exit.CodeUsage,
		connect.CodeAborted: exit.CodeNotDone, connect.CodeAlreadyExists: exit.CodeNotDone,
		connect.CodeInternal: exit.CodeSystem,
	} {
		gateway := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"code": %q, "message": "so the gateway says"}`, code)
		}))
		gateway.Config.Protocols = new(http.Protocols)
		gateway.Config.Protocols.SetUnencryptedHTTP2(true)
		gateway.Config.Protocols.SetHTTP1(true) // for sessions
		gateway.Start()
		t.Cleanup(gateway.Close)
		for _, c := range commands {
			name := strings.TrimPrefix(c.CommandPath(), "switchyard ")
			if name == "worker" && code == connect.CodeInternal {
				continue // it waits for a gateway that works
			}
			t.Run(code.String()+"/"+name, func(t *testing.T) {
				t.Parallel()
				args, given := arguments[name]
				if !given {
					args = strings.Fields(strings.ToLower(usageArguments(c.Use)))
				}
				want := want
				if name == "apply" && want == exit.CodeNotDone { // the code that means that something would change
					want = exit.CodeUsage
				}
				got := runWith(t, nil, "value", append(append(strings.Fields(name), "--gateway", gateway.URL), args...)...)
				if got.code != want || !strings.Contains(got.stderr, "so the gateway says") {
					t.Errorf("%v: exit code %d, want %d; stderr:\n%s", args, got.code, want, got.stderr)
				}
			})
		}
	}
}

// usageArguments returns the arguments that a usage line requires.
func usageArguments(use string) string {
	_, args, _ := strings.Cut(use, " ")
	args, _, _ = strings.Cut(args, "[")
	args, _, _ = strings.Cut(args, "|")
	args, _, _ = strings.Cut(args, ">")
	return args
}
