// Package explanation serves the calls of RunService that explain where and when tasks run: ExplainTask about a task of a run,
// PlanRun about the tasks of a definition. Both ask the placement queue through the workflow Explain.
//
// Of this module it may import proto, gateway/rpcerror, gateway/runevents, gateway/runindex, gateway/runview,
// gateway/submission, workflows/definition, workflows/definition/source, workflows/names and workflows/phrase.
package explanation
