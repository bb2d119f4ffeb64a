package switchyardv1

// Model providers, the values of SubagentSpec.provider.
const (
	ProviderAnthropic = "anthropic"
	ProviderOpenAI    = "openai"
)

// KeyVariable returns the variable of a task with the key of a model provider, or "" for an unknown provider.
func KeyVariable(provider string) string {
	switch provider {
	case ProviderAnthropic:
		return "ANTHROPIC_API_KEY"
	case ProviderOpenAI:
		return "OPENAI_API_KEY"
	}
	return ""
}

// Providers returns all model providers, the default first.
func Providers() []string { return []string{ProviderAnthropic, ProviderOpenAI} }

// DefaultAgentModel is the model for agents of the default provider if their spec names no model.
const DefaultAgentModel = "claude-sonnet-5-5"

// Tools of agents, the values of SubagentSpec.tools.
const (
	AgentToolShell = "shell"
	AgentToolFiles = "files"
	AgentToolFetch = "fetch"
	AgentToolFleet = "fleet"
	// AgentToolMCP is the tool that a node allows so that agents may use MCP servers. A spec does
	// not name it.
	AgentToolMCP = "mcp"
)

// AgentTools returns the tools that a spec may name.
func AgentTools() []string {
	return []string{AgentToolShell, AgentToolFiles, AgentToolFetch, AgentToolFleet}
}

// AgentClaudeCode is the value of SubagentSpec.agent for Claude Code.
const AgentClaudeCode = "claude-code"
