package definition

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/condition"
	"switchyard/workflows/definition/source"
)

// flow checks the rules between fields of a task.
func (d *decoder) flow(task *v1.TaskDefinition, at *source.Path) {
	if p := at.Field("when"); task.GetWhen() != "" && !d.IsSettled(p) {
		if len(task.GetDependsOn()) == 0 && !d.IsSettled(at.Field("dependsOn")) {
			d.Add(d.locateKey(p), p, "when goes by how the tasks before this one ended, and dependsOn names none", "")
		}
		if task.GetOnFailure() == "run" {
			d.Add(d.locateKey(p), p, "when and onFailure: run exclude each other", "when: always starts the task however those before it ended")
		}
	}
	if p := at.Field("cache").Field("key"); task.GetCache().GetKey() != "" && !d.IsSettled(p) {
		d.emptyText(task.GetCache().GetKey(), p)
	}
	if p := at.Field("semaphore"); task.GetMutex() != "" && task.GetSemaphore() != nil {
		d.Add(d.locateKey(p), p, "mutex and semaphore exclude each other: a task holds one lock", "")
	}
	d.checkFieldScopes(task, at)
}

// runSpec checks the spec of a task of type run.
func (d *decoder) runSpec(spec *v1.RunSpec, p *source.Path) {
	workflow, definition := p.Field("workflow"), p.Field("definition")
	if d.IsSettled(workflow) || d.IsSettled(definition) || d.IsSettled(p) {
		return
	}
	name, inline := spec.GetWorkflow(), spec.GetDefinition() != nil
	switch {
	case name != "" && inline:
		d.Add(d.locateKey(definition), definition, "spec.workflow and spec.definition exclude each other", "workflow names a stored definition, definition is one")
	case name == "" && !inline:
		d.Add(d.locate(p), p, "spec has neither workflow nor definition", "workflow: NAME runs a stored definition, definition: { name: ..., tasks: ... } another one")
	case name == "" || condition.HasTemplate(name):
	case !workflowName().MatchString(name):
		d.badWorkflowName(d.locate(workflow), workflow, name)
	default:
		d.noteStored(name, workflow)
	}
	if def := d.inner[p.String()]; len(def.GetInputs()) > 0 && !d.IsSettled(p.Field("input")) {
		d.input(def, spec.GetInput(), p.Field("input"), true)
	}
}

// concurrency checks the limit on open runs of the workflow.
func (d *decoder) concurrency(c *v1.RunConcurrency, p *source.Path) {
	if c.GetStrategy() != "" && c.GetMaxRuns() == 0 && !d.IsSettled(p.Field("maxRuns")) {
		d.Add(d.locateKey(p.Field("strategy")), p.Field("strategy"), "concurrency.strategy has no effect without maxRuns", "maxRuns: 1 lets one run at a time")
	}
}

// task checks the rules for one task that the model does not express.
func (d *decoder) task(def *v1.Definition, task *v1.TaskDefinition, spec proto.Message, at *source.Path) {
	if spec != nil {
		d.validate(spec, at.Field("spec"))
	}
	if run, ok := spec.(*v1.RunSpec); ok {
		d.runSpec(run, at.Field("spec"))
	}
	if relay, ok := spec.(*v1.ClaudeRelaySpec); ok {
		d.relaySpec(relay, at.Field("spec"))
	}
	if approval, ok := spec.(*v1.ApprovalSpec); ok {
		d.approvalSpec(approval, at.Field("spec"))
	}
	if container, ok := spec.(*v1.ContainerSpec); ok {
		d.containerSpec(container, at.Field("spec"))
	}
	if machine, ok := spec.(*v1.VpsSpec); ok {
		d.vpsSpec(machine, at.Field("spec"))
	}
	if shell, ok := spec.(*v1.ShellSpec); ok {
		d.shellSpec(shell, at.Field("spec"))
	}
	if agent, ok := spec.(*v1.SubagentSpec); ok {
		d.agentSpec(agent, at.Field("spec"))
	}
	if job, ok := spec.(*v1.K8SJobSpec); ok {
		d.kubernetesSpec(task, job, at)
	}
	d.env(task.GetEnv(), at.Field("env"))
	d.secretEnv(task.GetSecretEnv(), task.GetEnv(), at.Field("secretEnv"))
	d.duration(task.GetTimeout(), at.Field("timeout"))
	d.duration(task.GetDeadline(), at.Field("deadline"))
	d.heartbeatTimeout(task.GetHeartbeatTimeout(), at.Field("heartbeatTimeout"))
	d.duration(task.GetCache().GetTtl(), at.Field("cache").Field("ttl"))
	d.nodes(task.GetConstraints(), at.Field("constraints"))
	d.flow(task, at)
	d.fanOut(task, at)
	d.warnings(def, task, spec, at)
}

// tasks checks the rules for each task.
func (d *decoder) tasks(def *v1.Definition, specs map[string]proto.Message) {
	for _, name := range slices.Sorted(maps.Keys(def.GetTasks())) {
		d.task(def, def.GetTasks()[name], specs[name], d.base.Field("tasks").Key(name))
	}
}
