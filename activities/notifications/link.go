package notifications

import "net/url"

// RunURL returns the URL of a run on the page, given the URL at which people open the page, or "" if that is "".
func RunURL(external, run string) string {
	if external == "" {
		return ""
	}
	return external + "/ui/runs/" + url.PathEscape(run)
}
