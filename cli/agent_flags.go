package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"switchyard/activities/executor/subagent/model"
	"switchyard/activities/hostlist"
	"switchyard/cli/config"
	"switchyard/cli/exit"
	"switchyard/cli/stack"
	v1 "switchyard/proto/switchyard/v1"
)

// agentFlags holds the flags that set what agents may do on the nodes of a process.
type agentFlags struct {
	tools    []string
	hosts    []string
	keyFiles []string
	prices   string
}

// nodeAgentTools returns the tools that a node can allow.
func nodeAgentTools() []string { return append(v1.AgentTools(), v1.AgentToolMCP) }

func (a *agentFlags) add(f *pflag.FlagSet) {
	f.StringSliceVar(&a.tools, "agent-tools", []string{v1.AgentToolShell, v1.AgentToolFiles, v1.AgentToolMCP}, "tools that agents may use on this node if their tasks list them: shell, files, fetch, fleet, and mcp for mcpServers, or none; fleet lets agents start any task")
	f.StringSliceVar(&a.hosts, "agent-fetch-host", nil, "host that the fetch tool may access, such as docs.example.com or *.example.com; may be repeated")
	f.StringSliceVar(&a.keyFiles, "agent-key-file", nil, "file with the API key for agents whose tasks provide none, as PROVIDER=FILE, where PROVIDER is anthropic or openai; may be repeated")
	f.StringVar(&a.prices, "agent-prices", "", "JSON file with model prices in dollars per million tokens, which override the built-in ones: {\"MODEL\": {\"input\": 1, \"output\": 5}}")
}

// agentFlagNames lists the flags that agentFlags adds.
var agentFlagNames = []string{"agent-tools", "agent-fetch-host", "agent-key-file", "agent-prices"}

func (a *agentFlags) config() (cfg stack.AgentConfig, err error) {
	if !slices.Equal(a.tools, []string{"none"}) {
		for _, name := range a.tools {
			if !slices.Contains(nodeAgentTools(), name) {
				return cfg, exit.Usagef("--agent-tools %s: there is no such tool; use some of %s, or none", name, strings.Join(nodeAgentTools(), ", "))
			}
		}
		cfg.Tools = a.tools
	}
	for _, host := range a.hosts {
		if err := hostlist.Check(host); err != nil {
			return cfg, exit.Usagef("--agent-fetch-host: %w", err)
		}
	}
	cfg.FetchHosts = a.hosts
	if cfg.KeyFiles, err = config.ParsePairs("agent-key-file", a.keyFiles); err != nil {
		return cfg, err
	}
	for provider, file := range cfg.KeyFiles {
		if !slices.Contains(v1.Providers(), provider) {
			return cfg, exit.Usagef("--agent-key-file %s=%s: there is no provider %s; use %s", provider, file, provider, strings.Join(v1.Providers(), " or "))
		}
		path, err := filepath.Abs(file)
		if err == nil {
			_, err = os.Stat(path)
		}
		if err != nil {
			return cfg, exit.Usagef("--agent-key-file %s: %w", provider, err)
		}
		cfg.KeyFiles[provider] = path
	}
	if cfg.Prices, err = model.LoadPrices(a.prices); err != nil {
		return cfg, exit.Usagef("--agent-prices: %w", err)
	}
	return cfg, nil
}
