package cli

import (
	"slices"
	"testing"

	"github.com/spf13/pflag"

	"switchyard/workers/node"
)

func TestGamingFlags(t *testing.T) {
	defaults := node.DefaultGamingRules()
	for _, test := range []struct {
		args      []string
		processes []string
		load      float64
	}{
		{nil, defaults.Processes, defaults.GPULoad},
		{[]string{"--gaming-process", "doom*", "--gaming-process", "quake"}, []string{"doom*", "quake"}, defaults.GPULoad},
		{[]string{"--gaming-process", "none", "--gaming-gpu-load", "0"}, nil, 0},
	} {
		var g gamingFlags
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		g.add(f)
		must(t, f.Parse(test.args))
		rules, err := g.rules()
		must(t, err)
		if !slices.Equal(rules.Processes, test.processes) || rules.GPULoad != test.load || rules.GPUFor != defaults.GPUFor {
			t.Errorf("%v are %+v", test.args, rules)
		}
	}
}
