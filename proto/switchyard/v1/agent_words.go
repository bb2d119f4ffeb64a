package switchyardv1

// Providers of models: SubagentSpec.provider.
const (
	ProviderAnthropic = "anthropic"
	ProviderOpenAI    = "openai"
)

// Providers returns all providers of models, the default first.
func Providers() []string { return []string{ProviderAnthropic, ProviderOpenAI} }

// DefaultAgentModel leads agents of the default provider whose spec names no model.
const DefaultAgentModel = "claude-sonnet-5-5"

// Tools of agents: SubagentSpec.tools.
const (
	AgentToolShell = "shell"
	AgentToolFiles = "files"
	AgentToolFetch = "fetch"
	AgentToolFleet = "fleet"
	// AgentToolMCP is what a node allows so that agents may have servers of tools; no spec names it.
	AgentToolMCP = "mcp"
)

// AgentTools returns the tools that a spec may name.
func AgentTools() []string {
	return []string{AgentToolShell, AgentToolFiles, AgentToolFetch, AgentToolFleet}
}

// AgentClaudeCode is the program that SubagentSpec.agent names.
const AgentClaudeCode = "claude-code"
