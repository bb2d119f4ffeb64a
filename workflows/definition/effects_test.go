package definition

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"switchyard/dev/golden"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
)

// These are the effects of a field that has a non-default value.
const (
	refused    = "refused"    // it is a problem at its place
	warned     = "warned"     // there is a warning
	read       = "read"       // code that runs workflows reads it
	translated = "translated" // its value is written to other fields
	ignored    = "ignored"
)

// TestEveryFieldHasAnEffect sets each field of each message of the language to a non-default value, on tasks of each type, and
// compares the effect. Code that runs workflows must read every value that is accepted silently.
func TestEveryFieldHasAnEffect(t *testing.T) {
	reads := fieldReads(t)
	types := rulesOf((&v1.TaskDefinition{}).ProtoReflect().Descriptor().Fields().ByName("type")).in
	var table strings.Builder
	fmt.Fprintf(&table, "%-40s %s\n", "", strings.Join(types, " "))
	for _, file := range []protoreflect.FileDescriptor{v1.File_switchyard_v1_definition_proto, v1.File_switchyard_v1_spec_proto} {
		for i := range file.Messages().Len() {
			message := file.Messages().Get(i)
			for k := range message.Fields().Len() {
				field := message.Fields().Get(k)
				var effects []string
				for _, taskType := range types {
					effect := effectOf(t, field, taskType, reads)
					if effect == ignored {
						t.Errorf("%s of a task of type %s is accepted, and nothing reads it", field.FullName(), taskType)
					}
					effects = append(effects, effect)
				}
				row := strings.Join(effects, " ")
				if same := slices.Compact(slices.Clone(effects)); len(same) == 1 {
					row = same[0]
				}
				fmt.Fprintf(&table, "%-40s %s\n", string(message.Name())+"."+field.JSONName(), row)
			}
		}
	}
	golden.Check(t, "testdata/effects.golden", table.String())
}

// aPublicKey is a valid SSH public key.
const aPublicKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ2q0WZhYbT0sQ9VlLk1c6yGJQzH1FqyT1hVqPj8xQmD me@host"

// minimalSpecs holds an accepted spec for each type.
var minimalSpecs = map[string]map[string]any{
	v1.TypeShell:       {"command": "x"},
	v1.TypeContainer:   {"image": "x"},
	v1.TypeVPS:         {"image": "x"},
	v1.TypeK8sJob:      {"image": "x"},
	v1.TypeSubagent:    {"prompt": "x"},
	v1.TypeClaudeRelay: {"targetSessionId": "x", "prompt": "x"},
	v1.TypeRun:         {"workflow": "other"},
	v1.TypeApproval:    {},
}

// samples holds values for fields where a value made from the kind of the field would be refused.
var samples = map[string]any{
	"Definition.tasks":                map[string]any{"t": nil}, // replaces the existing tasks
	"Definition.inputs":               map[string]any{"i": map[string]any{}},
	"Definition.defaults":             map[string]any{"deadline": "2h"},
	"Definition.deadline":             "1h",
	"Definition.concurrency":          map[string]any{"maxRuns": 1},
	"Definition.schedule":             map[string]any{"cron": "0 2 * * *"},
	"ScheduleDefinition.cron":         []any{"0 2 * * *"},
	"ScheduleDefinition.timezone":     "Europe/Berlin",
	"ScheduleDefinition.jitter":       "5m",
	"ScheduleDefinition.catchUp":      "2h",
	"InputDefinition.enum":            []any{"x"},
	"TaskDefaults.timeout":            "1h",
	"TaskDefaults.deadline":           "1h",
	"TaskDefaults.constraints":        map[string]any{"avoidGaming": true},
	"TaskDefaults.resources":          map[string]any{"memoryMb": 1},
	"TaskDefaults.retry":              map[string]any{"maxRetries": 1},
	"TaskDefaults.heartbeatTimeout":   "1m",
	"TaskDefinition.spec":             nil, // the spec of the type
	"TaskDefinition.constraints":      map[string]any{"avoidGaming": true},
	"TaskDefinition.resources":        map[string]any{"memoryMb": 1},
	"TaskDefinition.retry":            map[string]any{"maxRetries": 1},
	"TaskDefinition.timeout":          "1h",
	"TaskDefinition.deadline":         "1h",
	"TaskDefinition.condition":        "workflow.name == 'x'",
	"TaskDefinition.parallel":         2,
	"TaskDefinition.foreach":          []any{"a"},
	"TaskDefinition.matrix":           map[string]any{"a": []any{"b"}},
	"TaskDefinition.batch":            2,
	"TaskDefinition.semaphore":        map[string]any{"name": "x", "limit": 2},
	"TaskDefinition.cache":            map[string]any{"key": "workflow.name"},
	"TaskDefinition.heartbeatTimeout": "1m",
	"TaskDefinition.secretEnv":        map[string]any{"A": "env:A"},
	"TaskDefaults.spec":               map[string]any{"shell": "bash"},
	"SpecDefaults.shell":              "bash",
	"ShellSpec.shell":                 "bash",
	"ContainerSpec.shell":             "bash",
	"K8sJobSpec.shell":                "bash",
	"TaskDefaults.secretEnv":          map[string]any{"A": "env:A"},
	"TaskDefinition.dependsOn":        []any{"before"},
	"Cache.key":                       "workflow.name",
	"Cache.ttl":                       "1h",
	"Constraints.requiresExecutors":   []any{"shell"},
	"RetryPolicy.when":                "attempt.exitCode == 1",
	"RetryPolicy.backoffMultiplier":   3,
	"ContainerSpec.mounts":            []any{map[string]any{"hostPath": "/x", "containerPath": "/x"}},
	"ContainerSpec.workingDirectory":  "/x",
	"ContainerSpec.ip":                "auto",
	"ContainerSpec.capAdd":            []any{"NET_ADMIN"},
	"ContainerSpec.ulimits":           []any{map[string]any{"name": "nofile", "soft": 1}},
	"ContainerSpec.imageTarball":      "/x.tar",
	"Ulimit.name":                     "core",
	"Ulimit.hard":                     2,
	"Mount.hostPath":                  "/y",
	"Mount.containerPath":             "/y",
	"VpsSpec.vmDiskSize":              "50G",
	"VpsSpec.mounts":                  []any{map[string]any{"hostPath": "/x", "containerPath": "/x"}},
	"VpsSpec.sshPublicKey":            aPublicKey,
	"VpsSpec.idleTimeout":             "2h",
	"VpsSpec.workingDirectory":        "/x",
	"VpsSpec.ip":                      "auto",
	"VpsSpec.capAdd":                  []any{"NET_ADMIN"},
	"VpsSpec.ulimits":                 []any{map[string]any{"name": "nofile", "soft": 1}},
	"VpsSpec.imageTarball":            "/x.tar",
	"K8sJobSpec.env":                  []any{map[string]any{"name": "A", "value": "x"}},
	"K8sJobSpec.tolerations":          []any{map[string]any{"key": "x", "operator": "Exists"}},
	"K8sJobSpec.volumes":              []any{map[string]any{"name": "x", "emptyDir": map[string]any{}}},
	"K8sJobSpec.volumeMounts":         []any{map[string]any{"name": "x", "mountPath": "/x"}},
	"K8sJobSpec.template":             map[string]any{"spec": map[string]any{"priorityClassName": "x"}},
	"SubagentSpec.tools":              []any{"shell"},
	"SubagentSpec.baseUrl":            "http://127.0.0.1:1",
	"SubagentSpec.outputSchema":       map[string]any{"type": "object"},
	"SubagentSpec.stallTimeout":       "1m",
	"SubagentSpec.fetchHosts":         []any{"example.com"},
	"SubagentSpec.mcpServers":         map[string]any{"a": map[string]any{"command": []any{"x"}}},
	"McpServer.url":                   "http://127.0.0.1:1",
	"RunSpec.definition":              map[string]any{"name": "inner", "tasks": map[string]any{"t": map[string]any{"type": "approval"}}},
}

// companions holds the sibling fields that a field needs to be accepted.
var companions = map[string]map[string]any{
	"Definition.a2a":              {"description": "x"},
	"RunConcurrency.strategy":     {"maxRuns": 1},
	"SubagentSpec.image":          {"tools": []any{"shell"}},
	"SubagentSpec.provider":       {"model": "x"},
	"SubagentSpec.network":        {"tools": []any{"shell"}},
	"SubagentSpec.fetchHosts":     {"tools": []any{"fetch"}},
	"SubagentSpec.stallTimeout":   {"command": []any{"x"}},
	"McpServer.env":               {"command": []any{"x"}},
	"McpServer.headers":           {"url": "http://127.0.0.1:1"},
	"McpServer.tools":             {"command": []any{"x"}},
	"ScheduleDefinition.timezone": {"cron": "@daily"},
	"ScheduleDefinition.jitter":   {"cron": "@daily"},
	"ScheduleDefinition.overlap":  {"cron": "@daily"},
	"ScheduleDefinition.catchUp":  {"cron": "@daily"},
	"ScheduleDefinition.paused":   {"cron": "@daily"},
	"ScheduleDefinition.input":    {"cron": "@daily"},
	"TaskDefinition.concurrency":  {"parallel": 2},
	"TaskDefinition.maxFailures":  {"parallel": 2},
	"TaskDefinition.batch":        {"parallel": 2},
	"TaskDefinition.when":         {"dependsOn": []any{"before"}},
	"TaskDefinition.dependsOn":    {"condition": "parent.before.exitCode == 0"},
	"ShellSpec.network":           {"sandbox": true},
	"ContainerSpec.shell":         {"command": "x"},
	"K8sJobSpec.shell":            {"command": "x"},
	"ContainerSpec.ip":            {"network": "lab"},
	"VpsSpec.ip":                  {"network": "lab"},
	"VpsSpec.backend":             {"image": nil, "environment": "x"},
	"VpsSpec.vmImage":             {"image": nil, "environment": "x", "backend": "qemu"},
	"VpsSpec.vmDiskSize":          {"image": nil, "environment": "x", "backend": "qemu"},
	"VpsSpec.environment":         {"image": nil},
	"ContainerSpec.environment":   {"image": nil},
	"K8sJobSpec.volumeMounts":     {"volumes": []any{map[string]any{"name": "x", "emptyDir": map[string]any{}}}},
	"Semaphore.name":              {"limit": 2},
	"Semaphore.limit":             {"name": "x"},
	"Cache.ttl":                   {"key": "workflow.name"},
	"RunSpec.definition":          {"workflow": nil},
	"InputDefinition.enum":        {"default": "x"},
}

// sampleOf returns a non-default value of a field.
func sampleOf(field protoreflect.FieldDescriptor) any {
	if sample, ok := samples[shortName(field)]; ok {
		return sample
	}
	rules := rulesOf(field)
	switch {
	case len(rules.in) > 0:
		return rules.in[len(rules.in)-1]
	case field.IsMap():
		return map[string]any{"A": "b"}
	case field.IsList():
		return []any{"x"}
	case field.Kind() == protoreflect.BoolKind:
		return true
	case field.Kind() == protoreflect.Int32Kind, field.Kind() == protoreflect.DoubleKind:
		return 2
	case field.Message() != nil && field.Message().FullName() == structName:
		return map[string]any{"a": "b"}
	}
	return "x"
}

func shortName(field protoreflect.FieldDescriptor) string {
	return string(field.Parent().Name()) + "." + field.JSONName()
}

// documentWith returns a document in which a field of a message is set, in or about a task of a type, and the path of the
// field. Unless with is set, the field is left out. ok is false if such a task has no such message.
func documentWith(field protoreflect.FieldDescriptor, taskType string, value any, with bool) (document map[string]any, path string, ok bool) {
	spec := maps.Clone(minimalSpecs[taskType])
	task := map[string]any{"type": taskType, "spec": spec}
	document = map[string]any{
		"name": "walk", "tasks": map[string]any{"t": task, "before": map[string]any{"type": "approval"}},
	}
	in, at := map[string]any{}, ""
	switch name := string(field.Parent().Name()); name {
	case "Definition":
		in = document
	case "InputDefinition":
		document["inputs"], at = map[string]any{"i": in}, "inputs.i."
	case "TaskDefaults":
		document["defaults"], at = in, "defaults."
	case "SpecDefaults":
		document["defaults"], at = map[string]any{"spec": in}, "defaults.spec."
	case "RunConcurrency":
		document["concurrency"], at = in, "concurrency."
	case "ScheduleDefinition":
		document["schedule"], at = in, "schedule."
	case "TaskDefinition":
		in, at = task, "tasks.t."
	case "Semaphore", "Cache", "Constraints", "Resources", "RetryPolicy":
		word := map[string]string{"Semaphore": "semaphore", "Cache": "cache", "Constraints": "constraints", "Resources": "resources", "RetryPolicy": "retry"}[name]
		task[word], at = in, "tasks.t."+word+"."
	case "Mount":
		if taskType != v1.TypeContainer && taskType != v1.TypeVPS {
			return nil, "", false
		}
		in = map[string]any{"hostPath": "/x", "containerPath": "/x"}
		spec["mounts"], at = []any{in}, "tasks.t.spec.mounts[0]."
	case "McpServer":
		if taskType != v1.TypeSubagent {
			return nil, "", false
		}
		in = map[string]any{}
		spec["mcpServers"], at = map[string]any{"a": in}, "tasks.t.spec.mcpServers.a."
	case "Ulimit":
		if taskType != v1.TypeContainer && taskType != v1.TypeVPS {
			return nil, "", false
		}
		in = map[string]any{"name": "nofile", "soft": 1}
		spec["ulimits"], at = []any{in}, "tasks.t.spec.ulimits[0]."
	default:
		if newSpec(taskType).ProtoReflect().Descriptor() != field.Parent() {
			return nil, "", false
		}
		in, at = spec, "tasks.t.spec."
	}
	for name, more := range companions[shortName(field)] {
		if more == nil {
			delete(in, name)
		} else {
			in[name] = more
		}
	}
	path = at + field.JSONName()
	switch {
	case path == "tasks":
		value = map[string]any{"t": task}
	case path == "tasks.t.type":
		return document, path, true
	case path == "defaults.type" && with:
		delete(task, "type")
		value = taskType
	case path == "defaults.type": // another type, to show that the default has an effect
		task["type"] = map[bool]string{true: v1.TypeShell, false: v1.TypeApproval}[taskType == v1.TypeApproval]
		task["spec"] = minimalSpecs[task["type"].(string)]
	case value == nil:
		return document, path, true
	}
	if with {
		in[field.JSONName()] = value
	}
	return document, path, true
}

// effectOf returns the effect of a field on a task of a type.
func effectOf(t *testing.T, field protoreflect.FieldDescriptor, taskType string, reads map[protoreflect.FullName]bool) string {
	t.Helper()
	parsed := func(with bool) (Checked, error, string, bool) {
		document, path, ok := documentWith(field, taskType, sampleOf(field), with)
		if !ok {
			return Checked{}, nil, "", false
		}
		text, err := json.Marshal(document)
		if err != nil {
			t.Fatal(err)
		}
		checked, err := ParseChecked("walk.json", text)
		return checked, err, path, true
	}
	checked, err, path, ok := parsed(true)
	if !ok {
		return "-"
	}
	if problems, bad := errors.AsType[source.Problems](err); bad {
		for _, p := range problems {
			if !strings.HasPrefix(path, p.GetPath()) && !strings.HasPrefix(p.GetPath(), path) || p.GetLine() == 0 {
				t.Errorf("%s: %v", path, p)
			}
		}
		return refused
	}
	if len(checked.Warnings) > 0 {
		return warned
	}
	if reads[field.FullName()] {
		return read
	}
	without, err, _, _ := parsed(false)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if !hasField(checked.Definition, field) && !proto.Equal(checked.Definition, without.Definition) {
		return translated
	}
	return ignored
}

// hasField reports whether a definition still has a certain field, in the definition itself or in its task.
func hasField(def *v1.Definition, field protoreflect.FieldDescriptor) bool {
	switch field.Parent().Name() {
	case "Definition":
		return def.ProtoReflect().Has(field)
	case "TaskDefaults", "SpecDefaults":
		return def.GetDefaults() != nil
	case "TaskDefinition":
		return def.GetTasks()["t"].ProtoReflect().Has(field)
	}
	return true
}
