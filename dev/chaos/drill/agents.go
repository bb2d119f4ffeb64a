package drill

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"

	"switchyard/dev/scriptedmodel"
)

// startModel starts a model for agents, which run the program of a drill's tasks and repeat what it has printed.
func (y *Cluster) startModel(nodes ...string) error {
	command, err := json.Marshal(map[string]any{"command": taskCommand, "timeoutSeconds": 3600})
	if err != nil {
		return err
	}
	var script scriptedmodel.Script
	for _, node := range nodes {
		said := fmt.Sprintf("by %s 0\n", node)
		script.Rules = append(script.Rules, scriptedmodel.Rule{
			When: scriptedmodel.When{ToolResult: agentTool, ToolResultText: said}, Reply: scriptedmodel.Reply{Text: said},
		})
	}
	// An agent whose command was interrupted starts it again.
	script.Rules = append(script.Rules, scriptedmodel.Rule{
		Reply: scriptedmodel.Reply{ToolCalls: []scriptedmodel.ToolCall{{Name: agentTool, Arguments: scriptedmodel.Arguments(command)}}},
	})
	y.model = httptest.NewServer(scriptedmodel.New(script))
	return nil
}

// agentTool is the tool of the agents that runs commands.
const agentTool = "shell"

// agent returns the definition of the agent that performs a job, by a command in a container.
func (y *Cluster) agent(j job) taskSpec {
	t := y.task(j)
	t.Type = "subagent"
	t.Spec = map[string]any{
		"model": "scripted", "baseUrl": y.model.URL, "tools": []string{agentTool}, "image": engineImage, "prompt": "Work.",
	}
	return t
}
