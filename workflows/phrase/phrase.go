package phrase

// Because joins a reason word and its text. Either may be empty.
func Because(reason, text string) string {
	switch {
	case text == "":
		return reason
	case reason == "":
		return text
	}
	return reason + ": " + text
}

// By appends the actor to an action. Either may be empty.
func By(what, who string) string {
	switch {
	case who == "":
		return what
	case what == "":
		return "by " + who
	}
	return what + " by " + who
}
