package mcp

import (
	"context"
	"errors"
	"strings"
	"switchyard/docs"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// promptText is the template of the prompt that asks a model for a workflow.
const promptText = `Write a Switchyard workflow for this goal:

%goal%

1. Read the guide of the language, which follows, and see with list_nodes which labels, executors and GPUs the fleet has.
2. Write the definition in YAML. Give each task the smallest resources and constraints that it needs, a timeout, and a retry policy that fits what it does; tasks that may run at once must not depend on one another. Secrets go into secretEnv, never into env or a command.
3. Check it with validate_definition and mend every problem and warning.
4. Show the definition, and call submit_workflow with preview to see where its tasks could run. Start it only if that was asked for.`

// addPrompt registers the prompt.
func (s *Server) addPrompt() {
	s.served.AddPrompt(&sdk.Prompt{
		Name: "write_workflow", Title: "Write a workflow for ...", Description: "Asks for a workflow definition that achieves a goal, and includes the language guide.",
		Arguments: []*sdk.PromptArgument{{Name: "goal", Description: "What the workflow should do.", Required: true}},
	}, func(_ context.Context, req *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		goal := strings.TrimSpace(req.Params.Arguments["goal"])
		if goal == "" {
			return nil, errors.New("the argument goal is missing: describe what the workflow should do")
		}
		return &sdk.GetPromptResult{
			Description: "Write a workflow for: " + cutText(oneLine(goal), maxText),
			Messages: []*sdk.PromptMessage{
				{Role: "user", Content: &sdk.TextContent{Text: strings.ReplaceAll(promptText, "%goal%", goal)}},
				{Role: "user", Content: &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: guideURI, MIMEType: mimeMarkdown, Text: docs.Language}}},
			},
		}, nil
	})
}
