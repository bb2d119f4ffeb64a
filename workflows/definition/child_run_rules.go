package definition

import (
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/condition"
	"switchyard/workflows/definition/source"
)

// childRunRules checks the specs of tasks of type run.
type childRunRules struct{ *document }

// check checks the spec of a task of type run.
func (r childRunRules) check(spec *v1.RunSpec, p *source.Path) {
	workflow, definition := p.Field("workflow"), p.Field("definition")
	if r.IsSettled(workflow) || r.IsSettled(definition) || r.IsSettled(p) {
		return
	}
	name, inline := spec.GetWorkflow(), spec.GetDefinition() != nil
	switch {
	case name != "" && inline:
		r.Add(r.locateKey(definition), definition, "spec.workflow and spec.definition are mutually exclusive", "workflow names a stored definition; definition contains one")
	case name == "" && !inline:
		r.Add(r.locate(p), p, "spec has neither workflow nor definition", "workflow: NAME runs a stored definition; definition: { name: ..., tasks: ... } runs the one given here")
	case name == "" || condition.HasTemplate(name):
	case !workflowName().MatchString(name):
		r.badWorkflowName(r.locate(workflow), workflow, name)
	default:
		r.noteStored(name, workflow)
	}
	if def := r.inner[p.String()]; len(def.GetInputs()) > 0 && !r.IsSettled(p.Field("input")) {
		inputRules{r.decoder}.input(def, spec.GetInput(), p.Field("input"), true)
	}
}
