package mcp

import (
	"sync"

	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// tools returns all tools, grouped by purpose.
var tools = sync.OnceValue(func() []*tool {
	all := []*tool{
		{
			name: "submit_task", call: callOf(ofTasks, switchyardv1connect.TaskServiceClient.SubmitTask),
			description: "Starts a run of one task on a node that fits: a shell command, a container, ... Answers at once; " +
				"get_task_result and stream_task_output follow it. Give an idempotencyKey if you may have to repeat the call.",
			takes: "name type spec env secretEnv input constraints resources retry timeout deadline priority batch idempotencyKey",
			needs: "type spec", preview: previewTask,
		},
		{
			name: "submit_workflow", call: callOf(ofRuns, switchyardv1connect.RunServiceClient.SubmitRun),
			description: "Starts a run of a workflow, a DAG of tasks: one that is stored, by its name, or a definition, such as " +
				exampleDefinition + ". Answers at once; get_workflow_status follows it.",
			takes: "workflow input options batch idempotencyKey", adds: definitionName, do: submit(submission), preview: submit(submission),
		},
		{
			name: "run_distributed", call: callOf(ofRuns, switchyardv1connect.RunServiceClient.SubmitRun),
			description: "Runs a shell command on several nodes, as a run with one task per node. A failure on one node does not affect the others. " +
				"Answers at once; get_workflow_status shows the nodes, and stream_task_output what each printed.",
			takes: "idempotencyKey", adds: "command nodes timeout", needs: "command nodes", do: submit(distributed), preview: submit(distributed),
		},
		{
			name: "dispatch_subagents", call: callOf(ofRuns, switchyardv1connect.RunServiceClient.SubmitRun),
			description: "Runs subagents on the fleet at the same time, as a run with one task `agents` of that many instances. They do not see your conversation: " +
				"put all that they need into the prompt and the contextSummary. Answers at once; get_workflow_status shows when they have ended, and get_task_result " +
				`with the task "agents[0]" the first answer.`,
			takes: "idempotencyKey", adds: "prompt count contextSummary model tools", needs: "prompt", do: submit(subagents), preview: submit(subagents),
		},
		{
			name: "get_workflow_status", call: callOf(ofRuns, switchyardv1connect.RunServiceClient.ListRunTasks),
			description: "Shows a run: its state, how many tasks are in which state, and a page of its DAG with the state of each task. " +
				"With waitSeconds it answers when the run has ended, or after that time.",
			takes: "id state pageSize pageToken", adds: waitName, needs: "run",
			fixed: "brief", do: workflowStatus,
		},
		{
			name: "get_task_result", call: callOf(ofRuns, switchyardv1connect.RunServiceClient.GetRunTask),
			description: "Shows a task of a run, or an instance of it: state, exit code, output, the end of what it printed, and every attempt that has ended, with its node and why it failed.",
			takes:       "id task", adds: waitName, needs: "run", do: taskResult,
		},
		{
			name: "stream_task_output", call: callOf(ofRuns, switchyardv1connect.RunServiceClient.ListRunLogs),
			description: "Follows the output of the tasks of a run for at most waitSeconds, 5 by default: progress notifications carry it as it arrives, and the answer holds its last lines. " +
				"Call it again with the cursor of the answer to continue.",
			takes: "id task stream attempt", adds: "waitSeconds cursor", needs: "run", do: streamOutput,
		},
		{
			name: "explain_task", call: callOf(ofRuns, switchyardv1connect.RunServiceClient.ExplainTask),
			takes: "id task", needs: "run task",
		},
		{
			name: "list_tasks", call: callOf(ofTasks, switchyardv1connect.TaskServiceClient.ListTasks),
			description: "Lists the tasks of all runs, newest run first; fanned-out tasks are listed by instance.",
			takes:       "state type workflow node run batch pageSize pageToken",
		},
		{
			name: "list_workflows", call: callOf(ofRuns, switchyardv1connect.RunServiceClient.ListRuns),
			description: "Lists the runs of workflows, newest first. list_definitions has the workflows that are stored.",
			takes:       "state name node type batch owner text since pageSize pageToken",
		},
		{
			name: "list_definitions", call: callOf(ofWorkflows, switchyardv1connect.WorkflowServiceClient.ListWorkflows),
			description: "Lists the stored workflows, which submit_workflow starts by name. The resource " + definitionURI + " returns a complete one.",
			takes:       "search pageSize pageToken",
		},
		{
			name: "validate_definition", description: "Checks a definition without the fleet, and lists every problem with its place. submit_workflow with preview also says where its tasks could run.",
			adds: definitionName, needs: "definition", do: validateDefinition,
		},
		{
			name: "cancel_task", call: callOf(ofRuns, switchyardv1connect.RunServiceClient.CancelTask),
			takes: "id task reason", needs: "run task", preview: previewTaskState, destructive: true,
		},
		{
			name: "cancel_workflow", call: callOf(ofRuns, switchyardv1connect.RunServiceClient.CancelRun),
			description: "Cancels a run: waiting tasks are cancelled, running ones stopped; finally runs then.",
			takes:       "id reason now", needs: "run", preview: previewRunState, destructive: true,
		},
		{
			name: "retry_workflow", call: callOf(ofRuns, switchyardv1connect.RunServiceClient.RetryRun),
			takes: "id from limits finallyOnly", needs: "run", preview: previewRunState,
		},
		{
			name: "list_dead_letter_tasks", call: callOf(ofRuns, switchyardv1connect.RunServiceClient.ListDeadLetters),
			takes: "run type node pageSize pageToken",
		},
		{
			name: "retry_dead_letter_task", call: callOf(ofRuns, switchyardv1connect.RunServiceClient.RetryDeadLetter),
			takes: "run task", needs: "run", preview: previewDeadLetters,
		},
		{
			name: "list_nodes", call: callOf(ofNodes, switchyardv1connect.NodeServiceClient.ListNodes),
			takes: "state pageSize pageToken",
		},
		{
			name: "drain_node_tasks", call: callOf(ofNodes, switchyardv1connect.NodeServiceClient.DrainNode),
			takes: "name deadline reason", needs: "node", preview: previewDrain, destructive: true,
		},
		{
			name: "undrain_node", call: callOf(ofNodes, switchyardv1connect.NodeServiceClient.UndrainNode),
			takes: "name", needs: "node", preview: previewDrain,
		},
	}
	for _, t := range all {
		t.compile()
	}
	return all
})
