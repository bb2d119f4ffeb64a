package definition

import (
	"strings"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
)

// workflowRules checks the small fields of a whole workflow.
type workflowRules struct{ *decoder }

// a2a warns about a workflow that is offered to other agents although they will not find or choose it.
func (r workflowRules) a2a(def *v1.Definition, p *source.Path) {
	switch {
	case !def.GetA2A():
	case r.depth > 0:
		r.Warn(r.locateKey(p), p, "a2a has no effect in the definition of a task of type run", "`switchyard workflows put` offers a stored definition")
	case strings.TrimSpace(def.GetDescription()) == "":
		r.Warn(r.locateKey(p), p, "a2a offers the workflow to other agents, but it has no description", "other agents choose a skill by its description")
	}
}

// concurrency checks the limit on open runs of the workflow.
func (r workflowRules) concurrency(c *v1.RunConcurrency, p *source.Path) {
	if c.GetStrategy() != "" && c.GetMaxRuns() == 0 && !r.IsSettled(p.Field("maxRuns")) {
		r.Add(r.locateKey(p.Field("strategy")), p.Field("strategy"), "concurrency.strategy has no effect without maxRuns", "maxRuns: 1 lets one run at a time")
	}
}

// escapeInKeys must not occur in the name of a workflow, because a store in a folder takes it for an escape sequence.
const escapeInKeys = "__0x"

// name reports a workflow name that contains escapeInKeys, which the pattern of the model cannot exclude.
func (r workflowRules) name(name string, p *source.Path) {
	if strings.Contains(name, escapeInKeys) {
		r.Add(r.locate(p), p, "workflow name "+source.Quote(name)+" is not allowed: it contains "+escapeInKeys, "did you mean "+strings.ReplaceAll(name, escapeInKeys, "_0x")+"?")
	}
}
