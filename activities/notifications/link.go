package notifications

import "net/url"

// PageURL returns the URL of a run on the page, or of a workflow if run is "", given the URL at which people open the page. It returns
// "" if that is "".
func PageURL(external, run, workflow string) string {
	switch {
	case external == "":
		return ""
	case run == "":
		return external + "/ui/workflows/" + url.PathEscape(workflow)
	}
	return external + "/ui/runs/" + url.PathEscape(run)
}
