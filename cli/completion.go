package cli

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"switchyard/cli/client"
	"switchyard/cli/config"
	"switchyard/cli/output"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// completionTimeout bounds how long a shell waits after Tab is pressed.
	completionTimeout = time.Second
	// maxCompletions is the most runs, tasks, nodes or workflows that are offered to a shell.
	maxCompletions = 200
)

// completer lists the candidates for one argument, each as "word\tdescription". args holds the preceding arguments.
type completer func(ctx context.Context, a *client.Client, args []string) ([]string, error)

// completers maps the words of usage lines, and flags by name, to their completers.
var completers = map[string]completer{
	"RUN": completeRuns, "TASK": completeTasks, "nodes NAME": completeNodes, "workflows NAME": completeWorkflows, "schedules NAME": completeSchedules,
	"vps RUN": completeVps, "env NAME": completeEnvironments, "env TASK": completeNothing, "env --from": completeRuns,
	"--run": completeRuns, "--task": completeTasks, "--from": completeTasks, "--parent": completeRuns, "--node": completeNodes, "--workflow": completeWorkflows,
}

// addCompletions makes all commands complete their arguments and flags. Only a shell that completes a line needs it.
func addCompletions(sys *system, cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		addCompletions(sys, sub)
	}
	var places []completer
	for _, word := range strings.Fields(cmd.Use)[1:] {
		word = strings.Trim(strings.Split(word, "|")[0], "[].")
		c := completers[word]
		if own := cmd.Parent(); own != nil && completers[own.Name()+" "+word] != nil {
			c = completers[own.Name()+" "+word]
		}
		if c != nil {
			places = append(places, c)
		}
	}
	if len(places) > 0 {
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) >= len(places) {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return complete(sys, cmd, args, places[len(args)])
		}
	}
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if words, ok := f.Value.(*output.Choice); ok {
			// An error means that outputFlag has already registered a completion.
			_ = cmd.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(words.Allowed, cobra.ShellCompDirectiveNoFileComp))
		}
		c := completers["--"+f.Name]
		if group := cmd.Parent(); group != nil && completers[group.Name()+" --"+f.Name] != nil {
			c = completers[group.Name()+" --"+f.Name]
		}
		if c != nil {
			_ = cmd.RegisterFlagCompletionFunc(f.Name, func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
				return complete(sys, cmd, args, c)
			})
		}
	})
}

// complete asks the gateway of a command for candidates. Without a reply it offers none.
func complete(sys *system, cmd *cobra.Command, args []string, c completer) ([]string, cobra.ShellCompDirective) {
	if cmd.Flags().Lookup(gatewayFlagName) == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	if _, err := config.Apply(cmd, sys.getenv); err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	a, err := sys.openClient(cmd)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer a.Close()
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	words, err := c(ctx, a, args)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

func completeRuns(ctx context.Context, a *client.Client, _ []string) ([]string, error) {
	page, err := client.Call(ctx, a, a.Runs.ListRuns, &v1.ListRunsRequest{PageSize: maxCompletions})
	words := []string{lastRun}
	for _, run := range page.GetItems() {
		words = append(words, run.GetId()+"\t"+run.GetState())
	}
	return words, err
}

func completeTasks(ctx context.Context, a *client.Client, args []string) ([]string, error) {
	if len(args) == 0 {
		return nil, nil
	}
	page, err := client.Call(ctx, a, a.Runs.GetRun, &v1.GetRunRequest{Id: args[0], PageSize: maxCompletions, Brief: true})
	var words []string
	for _, name := range slices.Sorted(maps.Keys(page.GetRun().GetTasks())) {
		words = append(words, name+"\t"+page.GetRun().GetTasks()[name].GetState())
	}
	return words, err
}

func completeVps(ctx context.Context, a *client.Client, _ []string) ([]string, error) {
	page, err := client.Call(ctx, a, a.Vps.ListVps, &v1.ListVpsRequest{PageSize: maxCompletions})
	var words []string
	for _, m := range page.GetItems() {
		if word := m.GetId() + "\t" + m.GetStatus(); !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return words, err
}

func completeEnvironments(ctx context.Context, a *client.Client, _ []string) ([]string, error) {
	page, err := client.Call(ctx, a, a.Environments.ListEnvironments, &v1.ListEnvironmentsRequest{PageSize: maxCompletions})
	var words []string
	for _, e := range page.GetItems() {
		words = append(words, e.GetName()+"\t"+e.GetState())
	}
	return words, err
}

// completeNothing offers nothing, for words that depend on a flag.
func completeNothing(context.Context, *client.Client, []string) ([]string, error) { return nil, nil }

func completeNodes(ctx context.Context, a *client.Client, _ []string) ([]string, error) {
	page, err := client.Call(ctx, a, a.Nodes.ListNodes, &v1.ListNodesRequest{PageSize: maxCompletions})
	var words []string
	for _, n := range page.GetItems() {
		words = append(words, n.GetName()+"\t"+n.GetState())
	}
	return words, err
}

func completeWorkflows(ctx context.Context, a *client.Client, _ []string) ([]string, error) {
	page, err := client.Call(ctx, a, a.Workflows.ListWorkflows, &v1.ListWorkflowsRequest{PageSize: maxCompletions})
	var words []string
	for _, w := range page.GetItems() {
		words = append(words, w.GetName())
	}
	return words, err
}

func completeSchedules(ctx context.Context, a *client.Client, _ []string) ([]string, error) {
	page, err := client.Call(ctx, a, a.Schedules.ListSchedules, &v1.ListSchedulesRequest{PageSize: maxCompletions})
	var words []string
	for _, s := range page.GetItems() {
		words = append(words, s.GetName()+"\t"+scheduleState(s.GetPaused()))
	}
	return words, err
}
