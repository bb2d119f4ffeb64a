package web

// views are the pages. Each line is a page; the functions lie in files of their names.
var views = []view{
	{pattern: "/{$}", open: openOverview},
	{pattern: "/ui/runs", parameters: runFilters, open: openRuns},
}
