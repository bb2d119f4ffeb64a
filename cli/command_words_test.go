package cli

import (
	"strings"
	"testing"

	"switchyard/cli/exit"
)

func TestUnknownCommandsSuggestTheOneThatIsMeant(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"ps": "runs list or tasks list", "ls": "runs list", "show": "runs get", "describe": "runs get", "status": "runs get", "rm": "runs cancel or workflows delete",
		"del": "runs cancel or workflows delete", "kill": "runs kill", "PS": "runs list or tasks list", "sinfo": "nodes list or top", "cordon": "nodes drain", "scancel": "runs cancel",
		"runs show": "runs get", "runs status": "runs get", "runs describe": "runs get", "runs ls": "runs list", "runs ps": "runs list", "runs rm": "runs cancel", "runs del": "runs cancel",
		"runs tail": "runs logs", "runs start": "submit or run", "runs submit": "submit", "runs lits": "runs list", "workflows show": "workflows get", "workflows rm": "workflows delete",
		"workflows create": "workflows put", "nodes describe": "nodes get", "nodes rm": "nodes remove", "nodes ls": "nodes list", "nodes disable": "nodes drain", "nodes enable": "nodes undrain",
		"vps show": "vps status", "vps rm": "vps kill", "schedules run": "schedules trigger", "schedules unpause": "schedules resume", "secrets create": "secrets set",
		"tokens rm": "tokens revoke", "keys create": "keys add", "dlq rm": "dlq purge", "nodes cordn": "nodes cordon", "nodes uncordno": "nodes uncordon", "rnu": "run", "logs": "runs logs", "jobs": "runs list", "sched": "schedules", "workflow": "workflows",
	} {
		run(t, strings.Fields(args)...).ends(t, exit.CodeUsage, "\n  did you mean "+want+"?\n")
	}
	for _, word := range []string{"xyzzy", "runs xyzzy"} {
		if got := run(t, strings.Fields(word)...); strings.Contains(got.stderr, "did you mean") || got.code != exit.CodeUsage {
			t.Errorf("%s: %+v", word, got)
		}
	}
}

func TestUnknownFlagsAndWordsSuggestTheOneThatIsMeant(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"runs list --stat failed": "--stat\n  did you mean --state?\n", "runs list --pageTokn=x": "did you mean --page-token?", "dev --sharedDri x": "did you mean --shared-dir?",
		"runs list --state fialed": "cancelled or rejected; did you mean failed?\n", "runs events --event faild": "did you mean failed?", "runs list --trigger shedule": "did you mean schedule?",
		"runs list -o jsn": "did you mean json?", "runs list --xyzzy": "--xyzzy\n  see `switchyard runs list --help`", "runs list -x": "'x' in -x\n  see",
	} {
		run(t, strings.Fields(args)...).ends(t, exit.CodeUsage, want)
	}
}

// TestForeignCommandsNameCommands checks that each suggestion is a command, and that no command is called foreign.
func TestForeignCommandsNameCommands(t *testing.T) {
	t.Parallel()
	root := newRoot(&system{})
	for foreign, likely := range foreignCommands {
		if found, rest, err := root.Find(strings.Fields(foreign)); err == nil && len(rest) == 0 {
			t.Errorf("%s is %s", foreign, found.CommandPath())
		}
		for _, command := range likely {
			if found, rest, err := root.Find(strings.Fields(command)); err != nil || len(rest) > 0 || found.CommandPath() != "switchyard "+command {
				t.Errorf("%s suggests %s, which is no command", foreign, command)
			}
		}
	}
}
