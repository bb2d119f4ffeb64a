package phrase

// Because joins the word for a reason and its text, either of which may be empty.
func Because(reason, text string) string {
	switch {
	case text == "":
		return reason
	case reason == "":
		return text
	}
	return reason + ": " + text
}

// By appends who did something to what was done. Either may be empty.
func By(what, who string) string {
	switch {
	case who == "":
		return what
	case what == "":
		return "by " + who
	}
	return what + " by " + who
}
