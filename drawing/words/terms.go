package words

import (
	"cmp"
	"strings"

	v1 "switchyard/proto/switchyard/v1"
)

// Terms returns names and texts of the terms on which a node takes tasks, without those that every node has. set holds the terms that were
// set at run time.
func Terms(terms, set *v1.NodeTerms) [][]string {
	var rows [][]string
	add := func(name, text, usual string, isSet bool) {
		if isSet {
			text += " (set at run time)"
		} else if text == usual {
			return
		}
		rows = append(rows, []string{name, text})
	}
	list := func(values []string, none string) string {
		if len(values) == 0 {
			return none
		}
		return strings.Join(values, ", ")
	}
	add("kept for", list(terms.GetKeptFor(), "nothing"), "nothing", len(set.GetKeptFor()) > 0)
	add("while gaming", cmp.Or(terms.GetWhileGaming(), "finish"), "finish", set.GetWhileGaming() != "")
	add("hours", list(terms.GetHours(), "always"), "always", len(set.GetHours()) > 0)
	return rows
}
