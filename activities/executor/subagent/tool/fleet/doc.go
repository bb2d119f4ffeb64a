// Package fleet provides the tools by which an agent uses the fleet that it runs on: the tools of the gateway's MCP
// server, and two tools that start a run and wait for its end. Each run that an agent starts has an idempotency key
// derived from the call, so that a repeated call starts nothing twice, and a batch that links it to the agent's run.
//
// The package imports proto, activities/executor/subagent/tool, activities/executor/subagent/tool/mcptool and the library of
// calls of a gateway.
package fleet
