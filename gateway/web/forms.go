package web

// forms are the forms that are no simple actions. Each line is a page; a form without get belongs to the view of its pattern.
var forms = []form{
	{pattern: editorPath, parameters: []string{"from"}, get: (*Web).showEditor, post: (*Web).postEditor},
	{pattern: "/ui/workflows/{workflow}", post: (*Web).postWorkflow},
	{pattern: "/ui/schedules/{schedule}", post: (*Web).postSchedule},
}
