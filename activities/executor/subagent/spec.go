package subagent

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor"
	"switchyard/activities/executor/subagent/model"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	defaultMaxTurns  = 50
	defaultMaxTokens = 8192
)

// parseSpec parses a spec whose templates are already expanded. It rejects unknown fields rather than ignoring them: a
// field may come from a newer release and matter there.
func parseSpec(s *structpb.Struct) (*v1.SubagentSpec, error) {
	text, err := protojson.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("subagent spec: %w", err)
	}
	spec := &v1.SubagentSpec{}
	if err := protojson.Unmarshal(text, spec); err != nil {
		return nil, fmt.Errorf("subagent spec: %w", err)
	}
	switch {
	case strings.TrimSpace(spec.GetPrompt()) == "":
		return nil, errors.New("subagent spec: prompt is empty")
	case !isProgram(spec) && spec.GetModel() == "" && spec.GetProvider() == v1.ProviderOpenAI:
		return nil, errors.New("subagent spec: model is empty; with provider openai there is no default")
	case !isProgram(spec):
		spec.Model = cmp.Or(spec.GetModel(), v1.DefaultAgentModel)
	}
	spec.MaxTurns = cmp.Or(spec.GetMaxTurns(), defaultMaxTurns)
	spec.MaxTokens = cmp.Or(spec.GetMaxTokens(), defaultMaxTokens)
	spec.Provider = cmp.Or(spec.GetProvider(), v1.ProviderAnthropic)
	return spec, nil
}

// isProgram reports whether a program drives the agent.
func isProgram(spec *v1.SubagentSpec) bool {
	return spec.GetAgent() != "" || len(spec.GetCommand()) > 0
}

// checkTools returns an error for a tool that does not exist, or that the node does not allow.
func (e *Executor) checkTools(spec *v1.SubagentSpec) error {
	for _, name := range spec.GetTools() {
		switch {
		case !slices.Contains(v1.AgentTools(), name):
			return badSpec(fmt.Errorf("subagent spec: unknown tool %q (available: %s)", name, strings.Join(v1.AgentTools(), ", ")))
		case !slices.Contains(e.o.Tools, name):
			return cannotStart(fmt.Errorf("this node allows the agent tools %s, but not %s; start its worker with --agent-tools %s, or require another node",
				cmp.Or(strings.Join(e.o.Tools, ", "), "none"), name, strings.Join(append(slices.Clone(e.o.Tools), name), ",")))
		}
	}
	if len(spec.GetMcpServers()) > 0 && !slices.Contains(e.o.Tools, v1.AgentToolMCP) {
		return cannotStart(fmt.Errorf("this node does not allow MCP servers; start its worker with --agent-tools %s, or require another node",
			strings.Join(append(slices.Clone(e.o.Tools), v1.AgentToolMCP), ",")))
	}
	return nil
}

// key returns the key for a model, from the task or from the node. The key of the node is sent only to the provider
// itself and never to a server that a task names. Such a server may need no key.
func (e *Executor) key(a executor.Attempt, spec *v1.SubagentSpec) (string, error) {
	provider := spec.GetProvider()
	if key := strings.TrimSpace(a.Env[v1.KeyVariable(provider)]); key != "" {
		return key, nil
	}
	if path := e.o.KeyFiles[provider]; path != "" && model.IsProviderAddress(provider, spec.GetBaseUrl()) {
		text, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("read the key for %s: %w", provider, err)
		}
		if key := strings.TrimSpace(string(text)); key != "" {
			return key, nil
		}
		return "", cannotStart(fmt.Errorf("the file with the key for %s, %s, is empty", provider, path))
	}
	if spec.GetBaseUrl() != "" {
		return "", nil
	}
	return "", cannotStart(fmt.Errorf("no key for %s; set secretEnv %s in the task, or start the worker with --agent-key-file %s=FILE",
		provider, v1.KeyVariable(provider), provider))
}
