package definition

import (
	"cmp"
	"fmt"

	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/condition"
	"switchyard/workflows/definition/source"
)

// taskRules checks the rules for tasks that the model does not express.
type taskRules struct {
	*document
	warnings *taskWarnings
}

// checkAll applies the rules to each task, in the order of their names.
func (r taskRules) checkAll(def *v1.Definition, specs map[string]proto.Message) {
	for _, name := range v1.TaskNames(def) {
		r.check(def, v1.TaskNamed(def, name), specs[name], taskPath(r.base, def, name))
	}
}

// check applies to one task the rules that the model does not express.
func (r taskRules) check(def *v1.Definition, task *v1.TaskDefinition, spec proto.Message, at *source.Path) {
	if spec != nil {
		modelRules{r.decoder}.validate(spec, at.Field("spec"))
	}
	switch p := at.Field("spec"); spec := spec.(type) {
	case *v1.RunSpec:
		r.childRun(spec, p)
	case *v1.ClaudeRelaySpec:
		relayRules{r.decoder}.check(spec, p)
	case *v1.ApprovalSpec:
		approvalRules{r.decoder}.check(spec, p)
	case *v1.ContainerSpec:
		containerRules{r.decoder}.check(spec, p)
	case *v1.VpsSpec:
		machineRules{containerRules{r.decoder}}.check(spec, p)
	case *v1.ShellSpec:
		r.shell(spec, p)
	case *v1.SubagentSpec:
		agentRules{r.decoder}.check(spec, p)
	case *v1.K8SJobSpec:
		kubernetesRules{r.decoder}.check(task, spec, at)
	}
	if spec, ok := spec.(interpreted); ok {
		interpreterRules{r.decoder}.check(spec, at.Field("spec"))
	}
	if needsNode(task) {
		r.longTexts(task.GetSpec(), task.GetEnv(), at)
	}
	variableRules{r.decoder}.plain(task.GetEnv(), at.Field("env"))
	variableRules{r.decoder}.secret(task.GetSecretEnv(), task.GetEnv(), at.Field("secretEnv"))
	r.duration(task.GetTimeout(), at.Field("timeout"))
	r.duration(task.GetDeadline(), at.Field("deadline"))
	r.durationOr(task.GetExpectedWithin(), at.Field("expectedWithin"), `"0" means any time`)
	r.heartbeatTimeout(task.GetHeartbeatTimeout(), at.Field("heartbeatTimeout"))
	r.stop(task.GetStop(), at.Field("stop"))
	r.duration(task.GetCache().GetTtl(), at.Field("cache").Field("ttl"))
	r.durationOr(task.GetArtifacts().GetKeep(), at.Field("artifacts").Field("keep"), `"0" means as long as the other results of the run`)
	constraintRules{r.decoder}.check(task.GetConstraints(), at.Field("constraints"))
	gpuRules{r.decoder}.check(task, at)
	r.flow(task, at.Parent.Name == "finally", at)
	fanOutRules{r.decoder}.check(task, at)
	gangRules{r.decoder}.check(task, at)
	r.warnings.check(def, task, spec, at)
}

// flow checks the rules between fields of a task.
func (r taskRules) flow(task *v1.TaskDefinition, isInFinally bool, at *source.Path) {
	if p := at.Field("when"); task.GetWhen() != "" {
		if len(task.GetDependsOn()) == 0 && !r.IsSettled(at.Field("dependsOn")) {
			hint := ""
			if isInFinally {
				hint = "for the end of the run, use condition: run.state != 'completed'"
				if task.GetWhen() == "always" || task.GetWhen() == "all_done" {
					hint = "leave it out: tasks in finally run however the tasks end"
				}
			}
			r.Add(r.locateKey(p), p, "when depends on the ends of other tasks, but dependsOn names none", hint)
		}
		if task.GetOnFailure() == "run" {
			r.Add(r.locateKey(p), p, "when and onFailure: run are mutually exclusive", "when: always starts the task regardless of how the others ended")
		}
	}
	if p := at.Field("cache").Field("key"); task.GetCache().GetKey() != "" {
		r.emptyText(task.GetCache().GetKey(), p)
	}
	if p := at.Field("semaphore"); task.GetMutex() != "" && task.GetSemaphore() != nil {
		r.Add(r.locateKey(p), p, "mutex and semaphore are mutually exclusive: a task holds one lock", "")
	}
	r.fieldScopes(task, at)
}

// fieldScopes reports fields of a task that have no effect on it.
func (r taskRules) fieldScopes(task *v1.TaskDefinition, at *source.Path) {
	if r.IsSettled(at.Field("type")) || r.IsSettled(at.Field("spec")) || newSpec(task.GetType()) == nil {
		return
	}
	for _, s := range fieldScopes {
		p := extend(at, s.field)
		if !s.isSet(task) || s.affects(task) {
			continue
		}
		hint, reason := cmp.Or(s.typeHint[task.GetType()], s.hint), cmp.Or(s.typeReason[task.GetType()], s.reason)
		r.Add(r.locateKey(p), p, s.field+" "+fmt.Sprintf(reason, task.GetType()), hint)
	}
}

// shell checks the spec of a task of type shell.
func (r taskRules) shell(spec *v1.ShellSpec, p *source.Path) {
	if at := p.Field("network"); spec.GetNetwork() != "" && !spec.GetSandbox() && !r.IsSettled(p.Field("sandbox")) {
		r.Add(r.locateKey(at), at, "spec.network is for a sandbox; a command without one has the node's network", "add sandbox: true, or leave network out")
	}
}

// childRun checks the spec of a task of type run.
func (r taskRules) childRun(spec *v1.RunSpec, p *source.Path) {
	workflow, definition := p.Field("workflow"), p.Field("definition")
	if r.IsSettled(workflow) || r.IsSettled(definition) {
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
	if def := r.inner[p.String()]; len(def.GetInputs()) > 0 {
		inputRules{r.decoder}.input(def.GetInputs(), spec.GetInput(), p.Field("input"), true)
	}
}
