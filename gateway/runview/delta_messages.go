package runview

import (
	v1 "switchyard/proto/switchyard/v1"

	"google.golang.org/protobuf/proto"
)

// MaxMessageBytes bounds the tasks in one message. gRPC clients refuse messages over 4 MiB.
const MaxMessageBytes = 1 << 20

// Messages splits a delta into messages of bounded size. The instances of a large task are spread over several messages.
func Messages(n Delta) []*v1.WatchRunResponse {
	var messages []*v1.WatchRunResponse
	run, size := n.Run, 0
	run.Tasks = map[string]*v1.Task{}
	flush := func() {
		messages = append(messages, &v1.WatchRunResponse{Run: run, TaskCount: n.total})
		run, size = headerOf(run), 0
		run.Tasks = map[string]*v1.Task{}
	}
	for _, t := range n.Tasks {
		taskSize := proto.Size(t.Task) + len(t.Name)
		if size+taskSize > MaxMessageBytes && len(run.Tasks) > 0 {
			flush()
		}
		size += taskSize
		run.Tasks[t.Name] = t.Task
		for rest := t.Instances; len(rest) > 0; {
			k := 0
			for k < len(rest) && (k == 0 || size < MaxMessageBytes) {
				size += proto.Size(rest[k])
				k++
			}
			task := CopyWithoutInstances(t.Task)
			task.Instances = rest[:k]
			run.Tasks[t.Name] = task
			if rest = rest[k:]; len(rest) > 0 {
				flush()
				size = taskSize
			}
		}
	}
	flush()
	return messages
}
