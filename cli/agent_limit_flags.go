package cli

import (
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"switchyard/cli/exit"
	v1 "switchyard/proto/switchyard/v1"
)

// agentLimitFlags holds the flags that raise the limits of agents.
type agentLimitFlags struct {
	turns, cost []string
}

// add registers the flags.
func (f *agentLimitFlags) add(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.turns, "max-turns", nil, "new maxTurns of an agent as TASK=N, such as writer=100; may be repeated")
	flags.StringArrayVar(&f.cost, "max-cost", nil, "new maxCostUsd of an agent as TASK=USD, such as writer=5.00; may be repeated")
}

// limits returns the limits by task, or nil if no flag was given.
func (f *agentLimitFlags) limits() (map[string]*v1.AgentLimits, error) {
	var limits map[string]*v1.AgentLimits
	of := func(flag, pair string) (*v1.AgentLimits, string, error) {
		task, value, ok := strings.Cut(pair, "=")
		if !ok || task == "" {
			return nil, "", exit.Usagef("--%s %s names no task; write --%[1]s TASK=%[2]s", flag, pair)
		}
		if limits == nil {
			limits = map[string]*v1.AgentLimits{}
		}
		if limits[task] == nil {
			limits[task] = &v1.AgentLimits{}
		}
		return limits[task], value, nil
	}
	for _, pair := range f.turns {
		l, value, err := of("max-turns", pair)
		if err != nil {
			return nil, err
		}
		n, err := strconv.ParseInt(value, 10, 32)
		if err != nil || n <= 0 {
			return nil, exit.Usagef("--max-turns %s: %q is not a whole number of at least 1", pair, value)
		}
		l.MaxTurns = int32(n)
	}
	for _, pair := range f.cost {
		l, value, err := of("max-cost", pair)
		if err != nil {
			return nil, err
		}
		sum, err := strconv.ParseFloat(strings.TrimPrefix(value, "$"), 64)
		if err != nil || !(sum > 0) || math.IsInf(sum, 0) {
			return nil, exit.Usagef("--max-cost %s: %q is not an amount of US dollars above 0", pair, value)
		}
		l.MaxCostUsd = sum
	}
	return limits, nil
}
