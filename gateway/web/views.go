package web

// views are the pages. Each line is a page; the functions lie in files of their names.
var views = []view{
	{pattern: "/{$}", open: openOverview},
	{pattern: "/ui/runs", parameters: runFilters, open: openRuns},
	{pattern: "/ui/workflows", parameters: []string{"search", "page"}, open: openWorkflows},
	{pattern: "/ui/workflows/{workflow}", open: openWorkflow},
	{pattern: "/ui/schedules", parameters: []string{"page"}, open: openSchedules},
	{pattern: "/ui/schedules/{schedule}", open: openSchedule},
}
