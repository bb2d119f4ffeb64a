package definition

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/condition"
)

// flow checks what the fields of a task ask of one another.
func (d *decoder) flow(task *v1.TaskDefinition, at *path) {
	if p := at.field("when"); task.GetWhen() != "" && !d.settled(p) {
		if len(task.GetDependsOn()) == 0 && !d.settled(at.field("dependsOn")) {
			d.add(d.locateKey(p), p, "when goes by how the tasks before this one ended, and dependsOn names none", "")
		}
		if task.GetOnFailure() == "run" {
			d.add(d.locateKey(p), p, "when and onFailure: run exclude each other", "when: always starts the task however those before it ended")
		}
	}
	if p := at.field("cache").field("key"); task.GetCache().GetKey() != "" && !d.settled(p) {
		d.emptyText(task.GetCache().GetKey(), p)
	}
	if p := at.field("semaphore"); task.GetMutex() != "" && task.GetSemaphore() != nil {
		d.add(d.locateKey(p), p, "mutex and semaphore exclude each other: a task holds one lock", "")
	}
	if d.settled(at.field("type")) || v1.NeedsNode(task.GetType()) {
		return
	}
	m := task.ProtoReflect()
	for _, name := range slices.Sorted(maps.Keys(forNodes)) {
		p := at.field(name)
		if !m.Has(m.Descriptor().Fields().ByJSONName(name)) || d.settled(p) {
			continue
		}
		hint := ""
		if name == "timeout" {
			hint = "deadline bounds the time from when it could start"
		}
		d.add(d.locateKey(p), p, name+" is for tasks that run on a node; one of type "+task.GetType()+" does not", hint)
	}
}

// runSpec checks the spec of a task of type run.
func (d *decoder) runSpec(spec *v1.RunSpec, p *path) {
	workflow, definition := p.field("workflow"), p.field("definition")
	if d.settled(workflow) || d.settled(definition) || d.settled(p) {
		return
	}
	name, inline := spec.GetWorkflow(), spec.GetDefinition() != nil
	switch {
	case name != "" && inline:
		d.add(d.locateKey(definition), definition, "spec.workflow and spec.definition exclude each other", "workflow names a stored definition, definition is one")
	case name == "" && !inline:
		d.add(d.locate(p), p, "spec says neither workflow nor definition", "workflow: NAME runs a stored definition, definition: { name: ..., tasks: ... } another one")
	case name != "" && !condition.HasTemplate(name) && !workflowName.MatchString(name):
		d.badWorkflowName(d.locate(workflow), workflow, name)
	}
	if def := d.inner[p.String()]; len(def.GetInputs()) > 0 && !d.settled(p.field("input")) {
		d.input(def, spec.GetInput(), p.field("input"), true)
	}
}

// concurrency checks how many runs of the workflow may be open.
func (d *decoder) concurrency(c *v1.RunConcurrency, p *path) {
	if c.GetStrategy() != "" && c.GetMaxRuns() == 0 && !d.settled(p.field("maxRuns")) {
		d.add(d.locateKey(p.field("strategy")), p.field("strategy"), "concurrency.strategy says nothing without maxRuns", "maxRuns: 1 lets one run at a time")
	}
}

// task applies the rules for one task that the model does not say.
func (d *decoder) task(task *v1.TaskDefinition, spec proto.Message, at *path) {
	if spec != nil {
		d.validate(spec, at.field("spec"))
	}
	if run, ok := spec.(*v1.RunSpec); ok {
		d.runSpec(run, at.field("spec"))
	}
	if container, ok := spec.(*v1.ContainerSpec); ok {
		d.containerSpec(container, at.field("spec"))
	}
	if shell, ok := spec.(*v1.ShellSpec); ok {
		d.shellSpec(shell, at.field("spec"))
	}
	d.env(task.GetEnv(), at.field("env"))
	d.duration(task.GetTimeout(), at.field("timeout"))
	d.duration(task.GetDeadline(), at.field("deadline"))
	d.heartbeatTimeout(task, at.field("heartbeatTimeout"))
	d.duration(task.GetCache().GetTtl(), at.field("cache").field("ttl"))
	d.nodes(task.GetConstraints(), at.field("constraints"))
	d.flow(task, at)
	d.fanOut(task, at)
}

// tasks applies the rules for each task.
func (d *decoder) tasks(def *v1.Definition, specs map[string]proto.Message) {
	for _, name := range slices.Sorted(maps.Keys(def.GetTasks())) {
		d.task(def.GetTasks()[name], specs[name], d.base.field("tasks").key(name))
	}
}
