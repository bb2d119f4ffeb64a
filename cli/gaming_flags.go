package cli

import (
	"slices"

	"github.com/spf13/pflag"

	"switchyard/cli/exit"
	"switchyard/workers/node"
)

// noProcess is the value that stands for an empty list of game processes.
const noProcess = "none"

// gamingFlags holds the rules by which a node detects that a user plays a game on its machine.
type gamingFlags struct {
	processes []string
	load      float64
}

func (g *gamingFlags) add(f *pflag.FlagSet) {
	rules := node.DefaultGamingRules()
	f.StringSliceVar(&g.processes, "gaming-process", nil, "program that runs while a user plays on this machine, with the wildcards * and ?; none disables the check; may be repeated (default the companion programs of Steam, Lutris and others)")
	f.Float64Var(&g.load, "gaming-gpu-load", rules.GPULoad, "load of a GPU without tasks, in percent, that means that a user plays on this machine; 0 disables the check")
}

// rules returns the rules that the flags set.
func (g *gamingFlags) rules() (*node.GamingRules, error) {
	rules := node.DefaultGamingRules()
	rules.GPULoad = g.load
	switch {
	case slices.Equal(g.processes, []string{noProcess}):
		rules.Processes = nil
	case len(g.processes) > 0:
		rules.Processes = g.processes
	}
	if err := rules.Validate(); err != nil {
		return nil, exit.Usagef("%w", err)
	}
	return rules, nil
}
