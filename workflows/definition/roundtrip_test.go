package definition

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"
	"pgregory.net/rapid"

	v1 "switchyard/proto/switchyard/v1"
)

// TestRoundTrip checks that a definition written in any spelling and format is read back unchanged.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		def := drawDefinition(t)
		if same, err := Complete(def); err != nil || !proto.Equal(same, def) {
			t.Fatalf("%v is completed to %v, %v", def, same, err)
		}
		for _, snake := range []bool{false, true} {
			data, err := protojson.MarshalOptions{UseProtoNames: snake}.Marshal(def)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, "a.json", data, def)
			var tree yaml.Node // keeps the text of numbers, which JSON and YAML share
			if err := yaml.Unmarshal(data, &tree); err != nil {
				t.Fatal(err)
			}
			clearStyle(&tree)
			data, err = yaml.Marshal(&tree)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, "a.yaml", data, def)
		}
	})
}

func clearStyle(n *yaml.Node) {
	n.Style = 0
	for _, child := range n.Content {
		clearStyle(child)
	}
}

func compare(t *rapid.T, file string, data []byte, want *v1.Definition) {
	got, err := Parse(file, data)
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	if !proto.Equal(got, want) {
		t.Fatalf("%s\n%s", data, cmp.Diff(want, got, protocmp.Transform()))
	}
}

func drawDefinition(t *rapid.T) *v1.Definition {
	// Control characters are left out because YAML refuses them, and `$` because it could form an expression.
	text := rapid.StringMatching(`[a-zA-Z0-9 :#'"\\,\[\]{}&*!|>%@é世-]{0,12}`)
	word := rapid.StringMatching(`[a-z][a-z0-9.-]{0,10}[a-z0-9]`)
	def := &v1.Definition{
		Name:          word.Draw(t, "name"),
		Description:   text.Draw(t, "description"),
		FailurePolicy: rapid.SampledFrom([]string{"", "halt", "continue"}).Draw(t, "policy"),
		Tasks:         map[string]*v1.TaskDefinition{},
	}
	if rapid.Bool().Draw(t, "context?") {
		def.Context = &structpb.Struct{Fields: map[string]*structpb.Value{
			text.Draw(t, "key"): structpb.NewStringValue(text.Draw(t, "value")),
			"number":            structpb.NewNumberValue(rapid.Float64Range(-1e9, 1e9).Draw(t, "number")),
			"null":              structpb.NewNullValue(),
			"list":              structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{structpb.NewBoolValue(true)}}),
		}}
	}
	for i := range rapid.IntRange(1, 4).Draw(t, "tasks") {
		command := structpb.NewStringValue("x" + text.Draw(t, "command"))
		if rapid.Bool().Draw(t, "list?") {
			command = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{command, structpb.NewStringValue(text.Draw(t, "arg"))}})
		}
		task := &v1.TaskDefinition{
			Type:            "shell",
			Spec:            &structpb.Struct{Fields: map[string]*structpb.Value{"command": command}},
			Env:             map[string]string{"A": text.Draw(t, "env"), "B_2": "true"},
			Priority:        int32(rapid.IntRange(0, 10).Draw(t, "priority")),
			Timeout:         rapid.SampledFrom([]string{"", "0", "90s", "2d"}).Draw(t, "timeout"),
			ContinueOnError: rapid.Bool().Draw(t, "continueOnError"),
			OnFailure:       rapid.SampledFrom([]string{"", "run", "skip"}).Draw(t, "onFailure"),
			Resources:       &v1.Resources{Cores: proto.Float64(rapid.Float64Range(0, 64).Draw(t, "cores")), NumaNode: proto.Int32(0)},
			Retry:           &v1.RetryPolicy{MaxRetries: proto.Int32(int32(rapid.IntRange(0, 9).Draw(t, "retries"))), Retryable: proto.Bool(false)},
			Constraints: &v1.Constraints{
				NodeLabels: rapid.SliceOf(text).Draw(t, "labels"), TargetNode: rapid.SampledFrom([]string{"", "a:0::2", "a::0,1"}).Draw(t, "target"),
				RequiresCapabilities: map[string]string{text.Draw(t, "capability"): text.Draw(t, "value")},
			},
		}
		if i > 0 {
			task.DependsOn = []string{fmt.Sprintf("t%d", i-1)}
			task.Condition = rapid.SampledFrom([]string{"", fmt.Sprintf("parent.t%d.exitCode == 0", i-1), "true"}).Draw(t, "condition")
		}
		drawLanguage(t, task, i, text)
		def.Tasks[fmt.Sprintf("t%d", i)] = task
	}
	if rapid.Bool().Draw(t, "schedule?") {
		def.Schedule = &v1.ScheduleDefinition{
			Cron:     rapid.SliceOfN(rapid.SampledFrom([]string{"@daily", "0 2 * * MON-FRI", "*/5 8-18 1,15 JAN *", "@every 90m"}), 1, 3).Draw(t, "cron"),
			Timezone: rapid.SampledFrom([]string{"", "Europe/Berlin", "UTC"}).Draw(t, "timezone"), Jitter: rapid.SampledFrom([]string{"", "5m"}).Draw(t, "jitter"),
			Overlap: rapid.SampledFrom([]string{"", "queue", "skip"}).Draw(t, "overlap"), CatchUp: rapid.SampledFrom([]string{"", "1d"}).Draw(t, "catchUp"),
			Paused: rapid.SampledFrom([]*bool{nil, proto.Bool(false), proto.Bool(true)}).Draw(t, "paused"),
		}
	}
	if rapid.Bool().Draw(t, "inputs?") {
		def.Inputs = map[string]*v1.InputDefinition{
			"text":   {Description: text.Draw(t, "input"), Default: structpb.NewStringValue(text.Draw(t, "default"))},
			"number": {Type: "number", Enum: []*structpb.Value{structpb.NewNumberValue(1.5), structpb.NewNumberValue(2)}, Default: structpb.NewNumberValue(2)},
			"list":   {Type: "list", Default: structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{structpb.NewNullValue()}})},
			"needed": {Type: "object", Required: true},
		}
		if def.Schedule != nil {
			def.Schedule.Input = &structpb.Struct{Fields: map[string]*structpb.Value{"needed": structpb.NewStructValue(&structpb.Struct{})}}
		}
	}
	def.A2A = rapid.Bool().Draw(t, "a2a")
	def.MaxParallel = int32(rapid.IntRange(0, 3).Draw(t, "maxParallel"))
	def.Deadline = rapid.SampledFrom([]string{"", "1h"}).Draw(t, "deadline")
	if rapid.Bool().Draw(t, "concurrency?") {
		def.Concurrency = &v1.RunConcurrency{MaxRuns: 2, Strategy: rapid.SampledFrom([]string{"", "fail", "queue"}).Draw(t, "strategy")}
	}
	return def
}

// drawLanguage adds random fields to a task that do not depend on its spec.
func drawLanguage(t *rapid.T, task *v1.TaskDefinition, i int, text *rapid.Generator[string]) {
	if i > 0 && task.OnFailure != "run" {
		task.When = rapid.SampledFrom([]string{"", "always", "one_failed", "none_failed"}).Draw(t, "when")
	}
	switch rapid.IntRange(0, 4).Draw(t, "fan out") {
	case 0:
		task.Parallel = structpb.NewNumberValue(float64(rapid.IntRange(0, 5).Draw(t, "parallel")))
	case 1:
		task.Parallel = structpb.NewStringValue("size(workflow.name)")
	case 2:
		task.Foreach = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{structpb.NewStringValue(text.Draw(t, "item")), structpb.NewNumberValue(1)}})
	case 3:
		task.Foreach = structpb.NewStringValue("workflow.context.items")
	}
	if task.Parallel != nil || task.Foreach != nil {
		task.Concurrency, task.MaxFailures = int32(rapid.IntRange(0, 3).Draw(t, "concurrency")), int32(rapid.IntRange(0, 3).Draw(t, "maxFailures"))
		task.Batch = rapid.SampledFrom([]*structpb.Value{nil, structpb.NewNumberValue(4), structpb.NewStringValue("auto")}).Draw(t, "batch")
		task.Env["ITEM"] = "${{ input.index }} of ${{ workflow.name }}, not $${{"
	}
	switch rapid.IntRange(0, 2).Draw(t, "lock") {
	case 0:
		task.Mutex = "lock"
	case 1:
		task.Semaphore = &v1.Semaphore{Name: "lock.2", Limit: 3}
	}
	if rapid.Bool().Draw(t, "cache?") {
		task.Cache = &v1.Cache{Key: "workflow.name", Ttl: rapid.SampledFrom([]string{"", "0", "1d"}).Draw(t, "ttl")}
	}
	task.Deadline = rapid.SampledFrom([]string{"", "2h"}).Draw(t, "task deadline")
	task.Retry.When = rapid.SampledFrom([]string{"", "attempt.exitCode > 1", "attempt.number == 0 && attempt.stderr.contains('x')"}).Draw(t, "retry.when")
}
