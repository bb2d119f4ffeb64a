// Package fleet has the tools by which an agent uses the fleet that it runs on: those of the gateway's server of the Model
// Context Protocol, and two that start a run and wait for its end. Each run that an agent starts has an idempotency key made
// of the call, so that a call that is sent again starts nothing twice, and a batch that links it to the agent's run.
//
// The package imports proto, activities/executor/subagent/tool, activities/executor/subagent/tool/mcptool and the library of
// calls of a gateway.
package fleet
