package workertest

import (
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
)

// ShortHeartbeat is a heartbeat time-out for runs whose nodes fall silent. A lease is lost after 6 s and has expired after
// 8 s. On a busy machine a live node may be silent for some seconds.
const ShortHeartbeat = 10 * time.Second

// longHeartbeat is the heartbeat time-out of other runs. No attempt loses its lease because the machine is busy.
const longHeartbeat = time.Minute

// Input parses a definition, written as YAML, and returns the input of a run. Only the nodes of this test take its tasks.
func (c *Nodes) Input(document string) *historyv1.RunInput {
	c.T.Helper()
	def, err := definition.Parse("test.yaml", []byte(document))
	if err != nil {
		c.T.Fatal(err)
	}
	return c.InputOf(def)
}

// InputOf returns the input of a run of a copy of the definition. Only the nodes of this test take its tasks.
func (c *Nodes) InputOf(def *v1.Definition) *historyv1.RunInput {
	c.T.Helper()
	refs, err := definition.References(def)
	if err != nil {
		c.T.Fatal(err)
	}
	def = proto.CloneOf(def)
	for _, task := range v1.AllTasks(def) {
		if task.Constraints == nil {
			task.Constraints = &v1.Constraints{}
		}
		task.Constraints.NodeLabels = append(task.Constraints.NodeLabels, c.Label)
		// All nodes share the few cores of this machine with other tests.
		if task.Resources == nil {
			task.Resources = &v1.Resources{Cores: new(float64)}
		}
	}
	return &historyv1.RunInput{
		Definition: def, References: refs,
		// On a busy machine a node may exceed the usual time-outs, and a re-placed task would get another claim.
		Options: &v1.RunOptions{PickupTimeout: durationpb.New(Limit), HeartbeatTimeout: durationpb.New(longHeartbeat)},
	}
}

// StructOf returns a Struct of plain values. It panics if a value is none.
func StructOf(m map[string]any) *structpb.Struct {
	s, err := structpb.NewStruct(m)
	if err != nil {
		panic(err) // the values come from the tests
	}
	return s
}

// ShellTask returns a shell task with the given parents.
func ShellTask(parents ...string) *v1.TaskDefinition {
	return &v1.TaskDefinition{Type: "shell", Spec: StructOf(map[string]any{"command": "x"}), DependsOn: parents}
}
