package definition

import _ "embed"

//go:embed README.md
var guide string

// Guide returns the guide to the language, in Markdown.
func Guide() string { return guide }
