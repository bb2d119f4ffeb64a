package definition

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"google.golang.org/protobuf/encoding/protojson"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
	"switchyard/workflows/nearest"
)

var (
	mcpServerName = lazyPattern(`^[A-Za-z0-9][A-Za-z0-9-]{0,31}$`)
	agentAddress  = lazyPattern(`^https?://[A-Za-z0-9.:\[\]_-]+(/[^\s@]*)?$`)
	fetchHost     = lazyPattern(`^(\*\.)?[A-Za-z0-9]([A-Za-z0-9.:-]*[A-Za-z0-9])?$`)
)

// agentRules checks the specs of tasks of type subagent.
type agentRules struct{ *decoder }

// check checks the spec of a task of type subagent.
func (r agentRules) check(spec *v1.SubagentSpec, p *source.Path) {
	r.notBlank(spec.GetPrompt(), p.Field("prompt"))
	program := spec.GetAgent() != "" || len(spec.GetCommand()) > 0
	if model := p.Field("model"); spec.GetModel() == "" && spec.GetProvider() == v1.ProviderOpenAI && !program {
		r.Add(r.locate(p), model, "spec.model is missing; with provider openai there is no default", "model: gpt-5-mini, or a model of your own server")
	}
	if agent := p.Field("agent"); spec.GetAgent() != "" && len(spec.GetCommand()) > 0 {
		r.Add(r.locateKey(agent), agent, "spec.agent and spec.command both name the program of the agent", "leave one of them out")
	}
	r.tools(spec, p)
	r.mcpServers(spec, p)
	r.address(spec.GetBaseUrl(), p.Field("baseUrl"))
	r.outputSchema(spec, p.Field("outputSchema"))
	r.duration(spec.GetStallTimeout(), p.Field("stallTimeout"))
	for i, host := range spec.GetFetchHosts() {
		r.word(host, p.Field("fetchHosts").Item(i), fetchHost().MatchString, "not a host name", `such as "docs.example.com" or "*.example.com"`)
	}
	const ofProgram = "has no effect on a program, which "
	hasShell, hasFetch := slices.Contains(spec.GetTools(), v1.AgentToolShell), slices.Contains(spec.GetTools(), v1.AgentToolFetch)
	for _, rule := range []struct {
		field      string
		isFor      bool
		what, hint string
	}{
		{"image", hasShell, "is for the tool shell", "add shell to tools, or leave it out"},
		{"network", hasShell, "is for the tool shell", "add shell to tools, or leave it out"},
		{"fetchHosts", hasFetch, "is for the tool fetch", "add fetch to tools, or leave it out"},
		{"stallTimeout", program, "is for agents with a program", "add agent or command, or leave it out"},
		{"tools", !program, ofProgram + "brings its own tools", "leave it out"},
		{"mcpServers", !program, ofProgram + "brings its own tools", "leave it out, or name the servers in the program's own settings"},
		{"provider", !program, ofProgram + "chooses its own provider", "leave it out"},
		{"baseUrl", !program, ofProgram + "chooses its own provider", "leave it out, or set the program's own variable in env"},
		{"maxTokens", !program, "has no effect on a program", "leave it out"},
	} {
		m, at := spec.ProtoReflect(), p.Field(rule.field)
		if !rule.isFor && m.Has(m.Descriptor().Fields().ByJSONName(rule.field)) && !r.IsSettled(p.Field("tools")) {
			r.Add(r.locateKey(at), at, at.Local()+" "+rule.what, rule.hint)
		}
	}
	if at := p.Field("fetchHosts"); hasFetch && len(spec.GetFetchHosts()) == 0 {
		r.Add(r.locate(p.Field("tools")), at, "spec.fetchHosts is missing; the tool fetch reads only from hosts that it names", `fetchHosts: ["docs.example.com"]`)
	}
}

func (r agentRules) tools(spec *v1.SubagentSpec, p *source.Path) {
	for i, name := range spec.GetTools() {
		at := p.Field("tools").Item(i)
		switch {
		case strings.Contains(name, "${{"):
			r.Add(r.locate(at), at, "spec.tools takes no expressions; the definition says what an agent may do", "write the names of the tools")
		case !slices.Contains(v1.AgentTools(), name):
			hint := strings.TrimSpace(nearest.DidYouMean(name, v1.AgentTools()) + " the tools are " + strings.Join(v1.AgentTools(), ", ") + "; mcpServers adds those of other servers")
			r.Add(r.locate(at), at, fmt.Sprintf("spec.tools[%d] is %s, which is not a tool", i, source.Quote(name)), hint)
		case slices.Index(spec.GetTools(), name) < i:
			r.Add(r.locate(at), at, fmt.Sprintf("spec.tools names %s twice", name), "leave one of them out")
		}
	}
}

func (r agentRules) mcpServers(spec *v1.SubagentSpec, p *source.Path) {
	for _, name := range slices.Sorted(maps.Keys(spec.GetMcpServers())) {
		server, at := spec.GetMcpServers()[name], p.Field("mcpServers").Key(name)
		if !mcpServerName().MatchString(name) {
			r.Add(r.locateKey(at), at, source.Quote(name)+" is not a valid name of an MCP server", "at most 32 letters, digits and '-', the first a letter or digit")
		}
		if hasCommand, hasURL := len(server.GetCommand()) > 0, server.GetUrl() != ""; hasCommand == hasURL {
			r.Add(r.locateKey(at), at, "server "+name+" needs either command or url", `command: [mcp-server-git, --repository, .] or url: https://tools.example.com/mcp`)
		}
		if len(server.GetHeaders()) > 0 && server.GetUrl() == "" {
			r.Add(r.locateKey(at.Field("headers")), at.Field("headers"), "headers are for a server with a url", "leave them out; use env for the variables of a command")
		}
		if len(server.GetEnv()) > 0 && len(server.GetCommand()) == 0 {
			r.Add(r.locateKey(at.Field("env")), at.Field("env"), "env is for a server with a command", "leave it out; use headers for a url")
		}
		r.address(server.GetUrl(), at.Field("url"))
	}
}

// address checks the URL of a provider or a server of tools.
func (r agentRules) address(text string, p *source.Path) {
	r.word(text, p, agentAddress().MatchString, "not a URL", "such as https://models.example.com/v1, without keys")
}

func (r agentRules) outputSchema(spec *v1.SubagentSpec, p *source.Path) {
	if spec.GetOutputSchema() == nil {
		return
	}
	text, err := protojson.Marshal(spec.GetOutputSchema())
	if err != nil {
		return // other rules report it
	}
	if kind := spec.GetOutputSchema().GetFields()["type"].GetStringValue(); kind != "object" {
		r.Add(r.locateKey(p), p, "spec.outputSchema does not describe an object; outputs of tasks are objects", "type: object, with properties")
		return
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err == nil {
		compiler := jsonschema.NewCompiler()
		compiler.UseLoader(noSchemas{})
		const name = "outputSchema:/" // errors show it, and a relative name would become a path on this machine
		if err = compiler.AddResource(name, value); err == nil {
			_, err = compiler.Compile(name)
		}
	}
	if err != nil {
		r.Add(r.locateKey(p), p, "spec.outputSchema is not a JSON schema: "+strings.ReplaceAll(err.Error(), "\n", " "), "see https://json-schema.org")
	}
}

// noSchemas is a schema loader that loads nothing.
type noSchemas struct{}

// Load always returns an error.
func (noSchemas) Load(url string) (any, error) {
	return nil, fmt.Errorf("a schema cannot refer to %s", url)
}
