package workers

import (
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor"
	v1 "switchyard/proto/switchyard/v1"
)

// structOf returns a Struct of plain values.
func structOf(m map[string]any) *structpb.Struct {
	s, err := structpb.NewStruct(m)
	if err != nil {
		panic(err) // the values come from the tests
	}
	return s
}

func executorOOM() executor.Result {
	return executor.Result{ExitCode: 137, Signal: "SIGKILL", OOMKilled: true}
}

// shellTask returns a shell task with the given parents.
func shellTask(parents ...string) *v1.TaskDefinition {
	return &v1.TaskDefinition{Type: "shell", Spec: structOf(map[string]any{"command": "x"}), DependsOn: parents}
}
