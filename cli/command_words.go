package cli

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"switchyard/cli/exit"
	"switchyard/workflows/nearest"
)

// foreignCommands maps commands of kubectl, docker, Nomad and Slurm to the commands that do the same here.
var foreignCommands = map[string][]string{
	"ps": {"runs list", "tasks list"}, "ls": {"runs list"}, "list": {"runs list"}, "jobs": {"runs list"}, "history": {"runs list"}, "sacct": {"runs list"},
	"get": {"runs get"}, "show": {"runs get"}, "describe": {"runs get"}, "inspect": {"runs get"}, "status": {"runs get"}, "info": {"runs get"},
	"rm": {"runs cancel", "workflows delete"}, "del": {"runs cancel", "workflows delete"}, "delete": {"runs cancel", "workflows delete"}, "remove": {"runs cancel", "workflows delete"},
	"kill": {"runs kill"}, "cancel": {"runs cancel"}, "scancel": {"runs cancel"}, "stop": {"runs cancel", "vps stop"}, "restart": {"runs retry", "vps restart"},
	"start": {"submit", "run"}, "sbatch": {"submit"}, "srun": {"run"}, "create": {"workflows put"}, "deploy": {"workflows put"},
	"runs start": {"submit", "run"}, "runs create": {"submit", "run"}, "runs new": {"submit", "run"}, "agent list": {"agent sessions"},
	"job": {"runs"}, "pod": {"runs"}, "pods": {"runs"}, "alloc": {"runs"}, "dag": {"workflows"}, "cron": {"schedules"}, "machine": {"nodes"},
	"tail": {"runs logs"}, "log": {"runs logs"}, "attach": {"runs watch"}, "wait": {"runs watch"}, "why": {"runs explain"},
	"squeue": {"queue"}, "sinfo": {"nodes list", "top"}, "up": {"dev"}, "serve": {"gateway"},
}

// sameVerbs lists verbs for one thing. For each of them, the first that a group of commands has is meant.
var sameVerbs = [][]string{
	{"list", "ls", "ps"},
	{"get", "status", "show", "describe", "inspect", "info", "view"},
	{"delete", "remove", "revoke", "purge", "cancel", "kill", "rm", "del", "destroy", "drop"},
	{"kill", "cancel", "stop", "terminate", "abort"},
	{"create", "put", "add", "set", "new", "register"},
	{"trigger", "run", "start"},
	{"logs", "log", "tail", "output"},
	{"watch", "wait", "follow", "attach"},
	{"explain", "why"},
	{"resume", "undrain", "continue", "unpause", "enable"},
	{"pause", "drain", "suspend", "disable"},
}

// likelyCommands returns the commands that an unknown word below cmd stands for, without the name of the program: those that other
// programs call so, those of the same name in a group of commands, or the nearest in spelling.
func likelyCommands(cmd *cobra.Command, word string) []string {
	path := strings.TrimPrefix(cmd.CommandPath()+" ", "switchyard ")
	if known := foreignCommands[path+strings.ToLower(word)]; known != nil {
		return known
	}
	var names, aliases, below []string
	for _, sub := range cmd.Commands() {
		names, aliases = append(names, sub.Name()), append(aliases, sub.Aliases...)
		if found, _, err := sub.Find([]string{word}); err == nil && found != sub {
			below = append(below, sub.Name()+" "+found.Name())
		}
	}
	if below != nil {
		return below
	}
	if i := slices.IndexFunc(sameVerbs, func(same []string) bool {
		return slices.Contains(same, strings.ToLower(word)) && slices.ContainsFunc(same, func(verb string) bool { return slices.Contains(names, verb) })
	}); i >= 0 {
		for _, verb := range sameVerbs[i] {
			if slices.Contains(names, verb) {
				return []string{path + verb}
			}
		}
	}
	names = append(names, aliases...)
	if near := nearest.Word(word, names); near != "" {
		return []string{path + near}
	}
	if slices.ContainsFunc(cmd.Root().Commands(), func(c *cobra.Command) bool { return c.Name() == word }) {
		return []string{word}
	}
	var longer []string
	for _, name := range names {
		if strings.HasPrefix(name, strings.ToLower(word)) {
			longer = append(longer, path+name)
		}
	}
	return longer
}

// unknownFlag returns the usage error of flags that cannot be parsed, with the flag that was probably meant by one that cmd lacks.
func unknownFlag(cmd *cobra.Command, err error) error {
	f := &exit.Error{Code: exit.CodeUsage, Err: err}
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok || unknown.GetSpecifiedShortnames() != "" {
		return f
	}
	var names []string
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden {
			names = append(names, flag.Name)
		}
	})
	if near := nearest.Word(unknown.GetSpecifiedName(), names); near != "" {
		f.Hint = "did you mean --" + near + "?"
	}
	return f
}
