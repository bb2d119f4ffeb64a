package runview

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"switchyard/proto/prototest"
	v1 "switchyard/proto/switchyard/v1"
)

// What the gateway shows of runs, tasks and instances has every field that the workflow has told, but for those that
// are left out on purpose.
func TestCopiesForgetNoField(t *testing.T) {
	t.Parallel()
	run, task, instance, status := &v1.Run{}, &v1.Task{}, &v1.Instance{}, &v1.StatusResponse{}
	for _, m := range []proto.Message{run, task, instance, status} {
		prototest.Fill(m)
	}
	of := &TaskView{Task: task}
	shown := TaskRef{Task: of, Instance: &InstanceView{Brief: BriefInstance(instance)}}.Brief()
	for name, missing := range map[string][]string{
		"a header":          prototest.Missing(headerOf(run), "tasks", "context", "input"),
		"a problem":         prototest.Missing(withProblem(status, "stuck"), "more"),
		"a task":            prototest.Missing(CopyWithoutInstances(task), "instances", "created_at", "dead_lettered_at", "name"),
		"a brief task":      prototest.Missing(briefOf("a", of, nil), "instances", "attempts", "created_at", "dead_lettered_at", "name"),
		"a brief instance":  prototest.Missing(BriefInstance(instance), "attempts", "lead", "dead_lettered_at", "item"),
		"an instance alone": prototest.Missing(shown, "instances", "attempts", "count", "counts", "dead_lettered_at", "name"),
		"a brief result":    prototest.Missing(briefResult(task.GetResult()), "stdout", "stderr", "output", "context_update", "image_digest", "container"),
	} {
		if len(missing) > 0 {
			t.Errorf("%s has no %v", name, missing)
		}
	}
}
