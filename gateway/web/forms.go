package web

// forms lists the forms that are not simple actions, one page per row. A form without get belongs to the view with the same
// pattern.
var forms = []form{
	{pattern: editorPath, parameters: []string{"from"}, get: (*Web).showEditor, post: (*Web).postEditor},
	{pattern: "/ui/runs/{run}/tasks/{task}", parameters: taskParameters, post: (*Web).postTask},
	{pattern: "/ui/workflows/{workflow}", post: (*Web).postWorkflow},
	{pattern: "/ui/schedules/{schedule}", post: (*Web).postSchedule},
}
