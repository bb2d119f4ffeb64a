package notifications

import "net/url"

// PageURL returns the URL of a task of a run on the page, of the run if task is "", or of a workflow if run is "", given the URL at which
// people open the page. It returns "" if that is "".
func PageURL(external, run, task, workflow string) string {
	switch {
	case external == "":
		return ""
	case run == "":
		return external + "/ui/workflows/" + url.PathEscape(workflow)
	case task != "":
		return external + "/ui/runs/" + url.PathEscape(run) + "/tasks/" + url.PathEscape(task)
	}
	return external + "/ui/runs/" + url.PathEscape(run)
}
