package condition

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// These are the type names of the model, as CEL's messages show them.
const (
	taskTypeName     = "task"
	resultTypeName   = "result"
	workflowTypeName = "workflow"
	attemptTypeName  = "attempt"
	runTypeName      = "run"
	artifactTypeName = "artifact"
)

// field is a field that an expression may select.
type field struct {
	kind *types.Type
	get  func(*object) ref.Val
}

// object is a value of the model: a task, its result, the workflow, an attempt, or the run. It belongs to one evaluation.
type object struct {
	kind     *types.Type
	fields   map[string]field
	task     *historyv1.ParentView
	workflow *historyv1.WorkflowView
	attempt  *historyv1.AttemptView
	run      *historyv1.RunView
	artifact *v1.Artifact
	outputs  ref.Val // of the instances; nil until first used
}

// model holds the types that expressions are checked against, in addition to CEL's own types. It is immutable.
type model struct {
	*types.Registry
	task, result, workflow, attempt, run, artifact *types.Type
	fields                                         map[string]map[string]field // by type name
}

func newModel() (*model, error) {
	registry, err := types.NewRegistry()
	if err != nil {
		return nil, fmt.Errorf("make CEL's type registry: %w", err)
	}
	m := &model{
		Registry: registry,
		task:     types.NewObjectType(taskTypeName),
		result:   types.NewObjectType(resultTypeName),
		workflow: types.NewObjectType(workflowTypeName),
		attempt:  types.NewObjectType(attemptTypeName),
		run:      types.NewObjectType(runTypeName),
		artifact: types.NewObjectType(artifactTypeName),
	}
	data := types.NewMapType(types.StringType, types.DynType)
	attempt := map[string]field{
		"exitCode":        {types.IntType, (*object).exitCode},
		"stdout":          {types.StringType, func(o *object) ref.Val { return types.String(o.taskResult().GetStdout()) }},
		"stderr":          {types.StringType, func(o *object) ref.Val { return types.String(o.taskResult().GetStderr()) }},
		"stdoutTruncated": {types.BoolType, func(o *object) ref.Val { return types.Bool(o.taskResult().GetStdoutTruncated()) }},
		"stderrTruncated": {types.BoolType, func(o *object) ref.Val { return types.Bool(o.taskResult().GetStderrTruncated()) }},
		"state":           {types.StringType, func(o *object) ref.Val { return types.String(cmp.Or(o.task.GetState(), o.attempt.GetState())) }},
	}
	result := maps.Clone(attempt)
	result["artifacts"] = field{types.NewMapType(types.StringType, m.artifact), func(o *object) ref.Val { return m.artifacts(o.taskResult()) }}
	result["output"] = field{types.DynType, func(o *object) ref.Val { return m.data(o.taskResult().GetOutput()) }}
	attempt["number"] = field{types.IntType, func(o *object) ref.Val { return types.Int(o.attempt.GetNumber()) }}
	attempt["reason"] = field{types.StringType, func(o *object) ref.Val { return types.String(o.attempt.GetReason()) }}
	task := maps.Clone(result)
	task["result"] = field{m.result, func(o *object) ref.Val {
		return &object{kind: m.result, fields: result, task: o.task}
	}}
	task["reason"] = field{types.StringType, func(o *object) ref.Val { return types.String(o.task.GetReason()) }}
	task["error"] = field{types.StringType, func(o *object) ref.Val { return types.String(o.task.GetError()) }}
	maps.Copy(task, m.fanOutFields())
	m.fields = map[string]map[string]field{
		taskTypeName:   task,
		resultTypeName: result,
		workflowTypeName: {
			"name":    {types.StringType, func(o *object) ref.Val { return types.String(o.workflow.GetName()) }},
			"runId":   {types.StringType, func(o *object) ref.Val { return types.String(o.workflow.GetRunId()) }},
			"context": {data, func(o *object) ref.Val { return m.data(o.workflow.GetContext()) }},
			"input":   {data, func(o *object) ref.Val { return m.data(o.workflow.GetInput()) }},
		},
		attemptTypeName: attempt,
		runTypeName:     m.runFields(),
		artifactTypeName: {
			"size":   {types.IntType, func(o *object) ref.Val { return types.Int(o.artifact.GetSize()) }},
			"files":  {types.IntType, func(o *object) ref.Val { return types.Int(o.artifact.GetFiles()) }},
			"digest": {types.StringType, func(o *object) ref.Val { return types.String(o.artifact.GetDigest()) }},
		},
	}
	return m, nil
}

// taskResult returns the result of a task or an attempt, or nil if nothing of it ran.
func (o *object) taskResult() *v1.TaskResult {
	return cmp.Or(o.task.GetResult(), o.attempt.GetResult())
}

// exitCode returns the exit code of a task or an attempt, or -1 if nothing of it ran.
func (o *object) exitCode() ref.Val {
	if o.taskResult() == nil {
		return types.Int(-1)
	}
	return types.Int(o.taskResult().GetExitCode())
}

// artifacts returns the artifacts of a result by name.
func (m *model) artifacts(r *v1.TaskResult) ref.Val {
	all := map[ref.Val]ref.Val{}
	for _, a := range r.GetArtifacts() {
		all[types.String(a.GetName())] = &object{kind: m.artifact, fields: m.fields[artifactTypeName], artifact: a}
	}
	return types.NewRefValMap(m.Registry, all)
}

// data returns a JSON object as a map; its numbers are doubles.
func (m *model) data(s *structpb.Struct) ref.Val {
	if s == nil {
		s = &structpb.Struct{}
	}
	return types.NewJSONStruct(m.Registry, s)
}

func (m *model) taskValue(view *historyv1.ParentView) *object {
	return &object{kind: m.task, fields: m.fields[taskTypeName], task: view}
}

func (m *model) workflowValue(view *historyv1.WorkflowView) *object {
	return &object{kind: m.workflow, fields: m.fields[workflowTypeName], workflow: view}
}

func (m *model) runValue(view *historyv1.RunView) *object {
	return &object{kind: m.run, fields: m.fields[runTypeName], run: view}
}

// runFields returns the fields of the run.
func (m *model) runFields() map[string]field {
	text := func(get func(*historyv1.RunView) string) field {
		return field{types.StringType, func(o *object) ref.Val { return types.String(get(o.run)) }}
	}
	return map[string]field{
		"id":          text((*historyv1.RunView).GetId),
		"name":        text((*historyv1.RunView).GetName),
		"state":       text((*historyv1.RunView).GetState),
		"reason":      text((*historyv1.RunView).GetReason),
		"error":       text((*historyv1.RunView).GetError),
		"trigger":     text((*historyv1.RunView).GetTrigger),
		"submittedBy": text((*historyv1.RunView).GetSubmittedBy),
		"batch":       text((*historyv1.RunView).GetBatch),
		"generation":  {types.IntType, func(o *object) ref.Val { return types.Int(o.run.GetGeneration()) }},
		"failed":      {types.NewListType(types.StringType), func(o *object) ref.Val { return types.NewStringList(m.Registry, o.run.GetFailed()) }},
		"input":       {types.NewMapType(types.StringType, types.DynType), func(o *object) ref.Val { return m.data(o.run.GetInput()) }},
	}
}

func (m *model) attemptValue(view *historyv1.AttemptView) *object {
	return &object{kind: m.attempt, fields: m.fields[attemptTypeName], attempt: view}
}

// FindStructType returns a type of the model. CEL's checker calls it.
func (m *model) FindStructType(name string) (*types.Type, bool) {
	for _, own := range []*types.Type{m.task, m.result, m.workflow, m.attempt, m.run, m.artifact} {
		if own.TypeName() == name {
			return types.NewTypeTypeWithParam(own), true
		}
	}
	return m.Registry.FindStructType(name)
}

// FindStructFieldNames returns the fields of a type. CEL's checker calls it.
func (m *model) FindStructFieldNames(name string) ([]string, bool) {
	if fields, ok := m.fields[name]; ok {
		return slices.Sorted(maps.Keys(fields)), true
	}
	return m.Registry.FindStructFieldNames(name)
}

// FindStructFieldType returns the type of a field. CEL's checker calls it, and its planner to access the field directly.
func (m *model) FindStructFieldType(name, fieldName string) (*types.FieldType, bool) {
	fields, ok := m.fields[name]
	if !ok {
		return m.Registry.FindStructFieldType(name, fieldName)
	}
	f, ok := fields[fieldName]
	if !ok {
		return nil, false
	}
	return &types.FieldType{
		Type:  f.kind,
		IsSet: func(target any) bool { o, ok := target.(*object); return ok && o.has(fieldName) },
		GetFrom: func(target any) (any, error) {
			o, ok := target.(*object)
			if !ok {
				return nil, fmt.Errorf("no such field: %s", fieldName)
			}
			return f.get(o), nil
		},
	}, true
}

// Get and IsSet serve selections on operands without a static type.

func (o *object) Get(index ref.Val) ref.Val {
	name, ok := index.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(index)
	}
	f, ok := o.fields[string(name)]
	if !ok {
		return types.NewErr("no such field: %s", name)
	}
	return f.get(o)
}

func (o *object) IsSet(index ref.Val) ref.Val {
	name, ok := index.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(index)
	}
	return types.Bool(o.has(string(name)))
}

// has reports whether a field exists. A task has some fields only if it fanned out.
func (o *object) has(name string) bool {
	_, ok := o.fields[name]
	return ok && (o.task.GetFanOut() != nil || o.kind.TypeName() != taskTypeName || !slices.Contains(fanOutFields(), name))
}

// ConvertToNative always fails, because the model has no other form.
func (o *object) ConvertToNative(to reflect.Type) (any, error) {
	return nil, fmt.Errorf("a %s cannot be converted to %v", o.kind.TypeName(), to)
}

// ConvertToType converts only to the object's own type.
func (o *object) ConvertToType(to ref.Type) ref.Val {
	switch to {
	case types.TypeType:
		return o.kind
	case o.kind:
		return o
	}
	return types.NewErr("a %s cannot be converted to %s", o.kind.TypeName(), to.TypeName())
}

// Equal reports whether both are the same task, result, workflow, attempt or run.
func (o *object) Equal(other ref.Val) ref.Val {
	p, ok := other.(*object)
	return types.Bool(ok && p.kind == o.kind && p.task == o.task && p.workflow == o.workflow && p.attempt == o.attempt && p.run == o.run)
}

// Type returns the type in the model.
func (o *object) Type() ref.Type { return o.kind }

// Value returns the object itself.
func (o *object) Value() any { return o }
