package a2a

import (
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
)

const (
	// maxArtifacts and maxArtifactBytes bound the artifacts of an answer. What is beyond them is counted, and read by
	// `runs get`.
	maxArtifacts     = 200
	maxArtifactBytes = 1 << 20
	// maxPrinted bounds what an artifact has of what a task printed, in bytes: the end of it.
	maxPrinted = 4 << 10
)

// artifacts are what tasks have left, within the bounds of an answer, each once.
type artifacts struct {
	all   []*a2a.Artifact
	bytes int
	// known are the tasks whose artifacts are in all, or had no room; omitted counts the latter.
	known   map[string]bool
	omitted int
}

// isFull reports whether there is room for no other artifact.
func (s *artifacts) isFull() bool { return len(s.all) >= maxArtifacts || s.bytes >= maxArtifactBytes }

// add adds the artifacts of tasks in the order of their names while there is room, and then counts the tasks that have
// succeeded: what they have left need not be read.
func (s *artifacts) add(tasks map[string]*v1.Task) {
	for _, name := range sortedNames(tasks) {
		artifact, full := artifactOf(name, tasks[name]), s.isFull()
		if s.known[name] || artifact == nil && !(full && v1.IsTaskSuccess(tasks[name].GetState())) {
			continue
		}
		if s.known == nil {
			s.known = map[string]bool{}
		}
		s.known[name] = true
		size := proto.Size(tasks[name])
		if full || len(s.all) > 0 && s.bytes+size > maxArtifactBytes {
			s.omitted++
			continue
		}
		s.all = append(s.all, artifact)
		s.bytes += size
	}
}

// artifactOf returns what a task has left: its output; of one that fanned out the outputs of its instances as a list; or else
// the end of what it printed. It returns nil for a task that has not succeeded or has left nothing.
func artifactOf(name string, task *v1.Task) *a2a.Artifact {
	if !v1.IsTaskSuccess(task.GetState()) {
		return nil
	}
	artifact := &a2a.Artifact{ID: a2a.ArtifactID(name), Name: name}
	if output := task.GetResult().GetOutput(); len(output.GetFields()) > 0 {
		artifact.Parts = a2a.ContentParts{dataPart(output.AsMap())}
		return artifact
	}
	if outputs := instanceOutputs(task.GetInstances()); outputs != nil {
		artifact.Parts = a2a.ContentParts{dataPart(outputs)}
		return artifact
	}
	printed := strings.TrimSpace(task.GetResult().GetStdout())
	if printed == "" {
		return nil
	}
	if cut := len(printed) - maxPrinted; cut > 0 {
		printed = strings.ToValidUTF8(printed[cut:], "")
		artifact.Metadata = map[string]any{"truncated": true}
	}
	part := a2a.NewTextPart(printed)
	part.MediaType = "text/plain"
	artifact.Parts = a2a.ContentParts{part}
	return artifact
}

// dataPart returns a part with data.
func dataPart(data any) *a2a.Part {
	part := a2a.NewDataPart(data)
	part.MediaType = "application/json"
	return part
}

// instanceOutputs returns the outputs of instances by index, null for one without, or nil if none has any.
func instanceOutputs(all []*v1.Instance) []any {
	var outputs []any
	for i, instance := range all {
		output := instance.GetResult().GetOutput()
		if len(output.GetFields()) == 0 {
			continue
		}
		if outputs == nil {
			outputs = make([]any, len(all))
		}
		outputs[i] = output.AsMap()
	}
	return outputs
}
