package mcp

import (
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// taskFields is the projection of a task in lists.
const taskFields = "task type state reason node attempt exitCode startedAt completedAt error"

// attemptFields is the projection of an attempt.
const attemptFields = "attempt node state reason error exitCode startedAt completedAt"

// tools returns all tools, grouped by purpose.
func tools() []*tool {
	return []*tool{
		{
			name: "submit_task", call: callOf(ofTasks, switchyardv1connect.TaskServiceClient.SubmitTask),
			description: "Starts a run of one task on a node that fits: a shell command, a container, ... Answers at once; " +
				"get_task_result and stream_task_output follow it. Give an idempotencyKey if you may have to repeat the call.",
			takes: "name type spec env secretEnv input constraints resources retry timeout deadline priority batch idempotencyKey",
			needs: "type spec", gives: "id=run task existed warnings(path message hint)", preview: previewTask,
		},
		{
			name: "submit_workflow", call: callOf(ofRuns, switchyardv1connect.RunServiceClient.SubmitRun),
			description: "Starts a run of a workflow, a DAG of tasks: one that is stored, by its name, or a definition. " +
				"Answers at once; get_workflow_status follows it.",
			takes: "workflow input options batch idempotencyKey", adds: []argument{definitionArgument("Either this or `workflow`. Example: " + exampleDefinition)},
			gives: "id=run name existed warnings(line column path message hint)", do: submitWorkflow, preview: previewWorkflow,
		},
		{
			name: "run_distributed", call: callOf(ofRuns, switchyardv1connect.RunServiceClient.SubmitRun),
			description: "Runs a shell command on several nodes, as a run with one task per node. A failure on one node does not affect the others. " +
				"Answers at once; get_workflow_status shows the nodes, and stream_task_output what each printed.",
			takes: "idempotencyKey", adds: distributedArguments(), needs: "command nodes",
			gives: "id=run existed", do: runDistributed, preview: previewDistributed,
		},
		{
			name: "get_workflow_status", call: callOf(ofRuns, switchyardv1connect.RunServiceClient.ListRunTasks),
			description: "Shows a run: its state, how many tasks are in which state, and a page of its DAG with the state of each task. " +
				"With waitSeconds it answers when the run has ended, or after that time.",
			takes: "id=run state pageSize pageToken", adds: []argument{waitArgument("until the run has ended")}, needs: "run",
			fixed: `{"brief":true}`, answer: statusSchema, do: workflowStatus,
		},
		{
			name: "get_task_result", call: callOf(ofRuns, switchyardv1connect.RunServiceClient.GetRunTask),
			description: "Shows a task of a run, or an instance of it: state, exit code, output, the end of what it printed, and every attempt that has ended, with its node and why it failed.",
			takes:       "id=run task", adds: []argument{waitArgument("until the task has ended")}, needs: "run", gives: resultFields, do: taskResult,
		},
		{
			name: "stream_task_output", call: callOf(ofRuns, switchyardv1connect.RunServiceClient.ListRunLogs),
			description: "Follows the output of the tasks of a run for at most waitSeconds: progress notifications carry it as it arrives, and the answer holds its last lines. " +
				"Call it again with the cursor of the answer to continue.",
			takes: "id=run task stream attempt", adds: outputArguments(), needs: "run", answer: outputSchema, do: streamOutput,
		},
		{
			name: "explain_task", call: callOf(ofRuns, switchyardv1connect.RunServiceClient.ExplainTask),
			takes: "id=run task", needs: "run task", gives: "task state chosen reason nodes(name feasible reasons score) parents",
		},
		{
			name: "list_tasks", call: callOf(ofTasks, switchyardv1connect.TaskServiceClient.ListTasks),
			description: "Lists the tasks of all runs, newest run first; fanned-out tasks are listed by instance.",
			takes:       "state type workflow node run batch pageSize pageToken", gives: "items(run workflow " + taskFields + ") nextPageToken warnings",
		},
		{
			name: "list_workflows", call: callOf(ofRuns, switchyardv1connect.RunServiceClient.ListRuns),
			description: "Lists the runs of workflows, newest first. list_definitions has the workflows that are stored.",
			takes:       "state name=workflow node type batch owner text since pageSize pageToken",
			gives:       "items(id=run name=workflow state reason error problem createdAt completedAt submittedBy batch trigger) nextPageToken",
		},
		{
			name: "list_definitions", call: callOf(ofWorkflows, switchyardv1connect.WorkflowServiceClient.ListWorkflows),
			description: "Lists the stored workflows, which submit_workflow starts by name. The resource " + definitionURI + " returns a complete one.",
			takes:       "search pageSize pageToken", gives: "items(name description cron timezone paused) nextPageToken total",
		},
		{
			name: "validate_definition", description: "Checks a definition without the fleet, and lists every problem with its place. submit_workflow with preview also says where its tasks could run.",
			adds: []argument{definitionArgument("")}, needs: "definition", answer: validationSchema, do: validateDefinition, offline: true,
		},
		{
			name: "cancel_task", call: callOf(ofRuns, switchyardv1connect.RunServiceClient.CancelTask),
			takes: "id=run task reason", needs: "run task", gives: "id=run", preview: previewTaskState, destructive: true,
		},
		{
			name: "cancel_workflow", call: callOf(ofRuns, switchyardv1connect.RunServiceClient.CancelRun),
			description: "Cancels a run: waiting tasks are cancelled, running tasks are stopped.",
			takes:       "id=run reason", needs: "run", gives: "id=run", preview: previewRunState, destructive: true,
		},
		{
			name: "retry_workflow", call: callOf(ofRuns, switchyardv1connect.RunServiceClient.RetryRun),
			takes: "id=run from limits", needs: "run", gives: "id=run generation", preview: previewRunState,
		},
		{
			name: "list_dead_letter_tasks", call: callOf(ofRuns, switchyardv1connect.RunServiceClient.ListDeadLetters),
			takes: "run type node pageSize pageToken",
			gives: "items(run workflow task type error reason deadLetteredAt attempts(attempt node reason exitCode)) nextPageToken warnings",
		},
		{
			name: "retry_dead_letter_task", call: callOf(ofRuns, switchyardv1connect.RunServiceClient.RetryDeadLetter),
			takes: "run task", needs: "run", gives: "run tasks generation", preview: previewDeadLetters,
		},
		{
			name: "list_nodes", call: callOf(ofNodes, switchyardv1connect.NodeServiceClient.ListNodes),
			takes: "state pageSize pageToken",
			gives: "items(name state reason labels executors capabilities running maxParallel cores memoryMb diskGb gpus) nextPageToken total",
		},
		{
			name: "drain_node_tasks", call: callOf(ofNodes, switchyardv1connect.NodeServiceClient.DrainNode),
			takes: "name=node deadline reason", needs: "node", gives: "node(name state reason running drained drainDeadline)", preview: previewDrain, destructive: true,
		},
		{
			name: "undrain_node", call: callOf(ofNodes, switchyardv1connect.NodeServiceClient.UndrainNode),
			takes: "name=node", needs: "node", gives: "node(name state reason running)", preview: previewDrain,
		},
	}
}
