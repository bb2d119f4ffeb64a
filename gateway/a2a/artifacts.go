package a2a

import (
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
)

const (
	// maxArtifacts and maxArtifactBytes bound the artifacts of an answer. Artifacts beyond the bound are only counted; `runs
	// get` returns them.
	maxArtifacts     = 200
	maxArtifactBytes = 1 << 20
	// maxPrinted bounds the printed text in an artifact, in bytes. The artifact keeps the end of the text.
	maxPrinted = 4 << 10
)

// artifacts collects the results of tasks, each task once, within the bounds of an answer.
type artifacts struct {
	all   []*a2a.Artifact
	bytes int
	// known holds the tasks that all covers or that did not fit; omitted counts those that did not fit.
	known   map[string]bool
	omitted int
}

// isFull reports whether there is no room for another artifact.
func (s *artifacts) isFull() bool { return len(s.all) >= maxArtifacts || s.bytes >= maxArtifactBytes }

// add adds the artifacts of tasks in name order while there is room. Once full, add only counts the tasks that have
// succeeded, so the caller need not read their results.
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

// artifactOf returns the result of a task as an artifact: the output of the task, a list of the outputs of its instances if
// it fanned out, or else the end of its printed text. It returns nil for a task that has not succeeded or has no result.
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

// dataPart wraps data in a part of media type JSON.
func dataPart(data any) *a2a.Part {
	part := a2a.NewDataPart(data)
	part.MediaType = "application/json"
	return part
}

// instanceOutputs returns the outputs of instances by index, with nil for an instance without output. It returns nil if no
// instance has output.
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
