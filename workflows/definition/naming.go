package definition

import (
	"regexp"
	"strings"
	"sync"

	"switchyard/workflows/definition/source"
)

// maxName is the longest name of a workflow, a task or a node, in characters.
const maxName = 63

var (
	workflowName = lazyPattern(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)
	targetNode   = lazyPattern(`^([^:]+)(?::([0-9]{1,6}))?(?:::([0-9]{1,6}(?:,[0-9]{1,6})*))?$`)
	notInTask    = lazyPattern(`[^A-Za-z0-9_-]+`)
	notInFlow    = lazyPattern(`[^A-Za-z0-9._-]+`)
	notInNode    = lazyPattern(`[^a-z0-9.-]+`)
	notInEnv     = lazyPattern(`[^A-Za-z0-9_]+`)
)

func (d *decoder) badWorkflowName(at source.Position, p *source.Path, name string) {
	if name == "" {
		d.Add(at, p, "name is missing", "a workflow needs a name, such as build-and-deploy")
		return
	}
	d.Add(at, p, "workflow name "+source.Quote(name)+" is not allowed: at most 63 letters, digits, '.', '_' and '-', the first a letter or digit",
		repaired(notInFlow().ReplaceAllString(name, "-"), "._-"))
}

// repaired returns the hint for a corrected name, or "". The name has its invalid characters replaced already and must not
// begin or end with a character of trim.
func repaired(name, trim string) string {
	name = strings.Trim(name, trim)
	if len(name) > maxName {
		name = strings.TrimRight(name[:maxName], trim)
	}
	if name == "" {
		return ""
	}
	return "did you mean " + name + "?"
}

// lazyPattern returns a function that compiles a regular expression at its first use, because most commands of the program
// check no definition.
func lazyPattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
