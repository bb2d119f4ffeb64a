package web

// views lists the views, one per row. Their functions are in files of the same names.
var views = []view{
	{pattern: "/{$}", open: openOverview},
	{pattern: "/ui/runs", parameters: runFilters, open: openRuns},
	{pattern: "/ui/nodes", parameters: nodeFilters, open: openNodes},
	{pattern: "/ui/nodes/{node}", open: openNode},
	{pattern: "/ui/queue", parameters: queueFilters, open: openQueue},
	{pattern: "/ui/approvals", isPersonal: true, open: openApprovals},
	{pattern: "/ui/dead-letters", parameters: deadLetterFilters, open: openDeadLetters},
	{pattern: "/ui/runs/{run}", parameters: []string{tasksParameter}, open: openRun},
	{pattern: "/ui/runs/{run}/tasks/{task}", parameters: taskParameters, isPersonal: true, open: openTask, fill: fillTask},
	{pattern: "/ui/runs/{run}/tasks/{task}/log", parameters: append([]string{"tab"}, logParameters...), follow: followLog},
	{pattern: "/ui/runs/{run}/tasks/{task}/log/search", parameters: searchParameters, open: openLogSearch},
	{pattern: "/ui/runs/{run}/tasks/{task}/artifacts/{artifact}", parameters: []string{fileParameter, "page"}, open: openArtifact},
	{pattern: "/ui/workflows", parameters: []string{"search", "page"}, open: openWorkflows},
	{pattern: "/ui/workflows/{workflow}", open: openWorkflow},
	{pattern: "/ui/schedules", parameters: []string{"page"}, open: openSchedules},
	{pattern: "/ui/schedules/{schedule}", open: openSchedule},
}
