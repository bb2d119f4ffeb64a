package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
)

// RunWriter writes a run as one JSON document: v1.Run in its JSON form, including zero values, with a result for every
// task. It receives the run in pages, so a run may be larger than memory.
type RunWriter struct {
	Out io.Writer
	// OneLine writes the document on one line with a type, for -o jsonl.
	OneLine bool

	tail  string // text after the tasks, or "" before the first page
	tasks int
}

// WritePage writes the tasks of a page. Their names must ascend from page to page.
func (rw *RunWriter) WritePage(run *v1.Run) error {
	if rw.tail == "" {
		if err := rw.writeHead(run); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(run.GetTasks())) {
		text, err := TaskJSON(run.GetTasks()[name])
		if err != nil {
			return err
		}
		key, err := json.Marshal(name)
		if err != nil {
			return err
		}
		before, colon := "", ":"
		if rw.tasks > 0 {
			before = ","
		}
		if !rw.OneLine {
			before, colon, text = before+"\n    ", ": ", Indented(text, "    ")
		}
		if _, err := fmt.Fprintf(rw.Out, "%s%s%s%s", before, key, colon, text); err != nil {
			return err
		}
		rw.tasks++
	}
	return nil
}

// writeHead writes the text before the tasks, and stores the text after them in tail.
func (rw *RunWriter) writeHead(run *v1.Run) error {
	head := proto.CloneOf(run)
	head.Tasks = nil
	if head.Context == nil {
		head.Context = &structpb.Struct{}
	}
	if head.Input == nil {
		head.Input = &structpb.Struct{}
	}
	text, err := CompactJSON(head)
	if err != nil {
		return err
	}
	if rw.OneLine {
		text = append([]byte(`{"type":"run",`), bytes.TrimPrefix(text, []byte("{"))...)
	} else {
		text = Indented(text, "")
	}
	// Quotes inside a string are escaped and no earlier field is an object, so the first match is the field itself.
	for _, tasks := range []string{`"tasks":{`, `"tasks": {`} {
		if before, behind, ok := strings.Cut(string(text), tasks); ok {
			rw.tail = behind
			_, err := io.WriteString(rw.Out, before+tasks)
			return err
		}
	}
	return errors.New("the JSON of the run has no tasks")
}

// End writes the end of the document.
func (rw *RunWriter) End() error {
	tail := rw.tail + "\n"
	if rw.tasks > 0 && !rw.OneLine {
		tail = "\n  " + tail
	}
	_, err := io.WriteString(rw.Out, tail)
	return err
}

// TaskJSON returns a task as JSON. The result is always present; fields for fan-outs, cached results and the like are
// present only if the task has them.
func TaskJSON(task *v1.Task) ([]byte, error) {
	task.Result = completeResult(task.GetResult())
	instances := task.GetInstances()
	task.Instances = nil
	text, err := CompactJSON(task)
	if err != nil {
		return nil, err
	}
	if task.Count == nil {
		return omitFields(text, append(absentFields(task), "counts", "instances"))
	}
	if text, err = omitFields(text, append(absentFields(task), "instances")); err != nil {
		return nil, err
	}
	all := make([][]byte, len(instances))
	for k, i := range instances {
		if all[k], err = InstanceJSON(i); err != nil {
			return nil, err
		}
	}
	return slices.Concat(text[:len(text)-1], []byte(`,"instances":[`), bytes.Join(all, []byte(",")), []byte("]}")), nil
}

// InstanceJSON returns an instance as JSON, with the fields that TaskJSON would include.
func InstanceJSON(i *v1.Instance) ([]byte, error) {
	i.Result = completeResult(i.GetResult())
	text, err := CompactJSON(i)
	if err != nil {
		return nil, err
	}
	fields := absentFields(i)
	if i.GetItem() == "" {
		fields = append(fields, "item")
	}
	return omitFields(text, fields)
}

// absentFields returns the optional fields that a task or instance does not have and that its JSON omits.
func absentFields(of interface {
	GetCachedFrom() string
	GetChildRun() string
	GetHeld() bool
	GetNotice() string
	GetWorkload() *v1.Workload
	GetLeaseUntil() *timestamppb.Timestamp
}) []string {
	var fields []string
	for field, there := range map[string]bool{
		"cachedFrom": of.GetCachedFrom() != "", "childRun": of.GetChildRun() != "", "held": of.GetHeld(), "notice": of.GetNotice() != "",
		"workload": of.GetWorkload() != nil, "leaseUntil": of.GetLeaseUntil() != nil,
	} {
		if !there {
			fields = append(fields, field)
		}
	}
	return fields
}

// completeResult returns a result with a non-nil output. It represents a missing result, which means that nothing has
// run, by exit code -1.
func completeResult(r *v1.TaskResult) *v1.TaskResult {
	if r == nil {
		r = &v1.TaskResult{ExitCode: -1}
	}
	if r.Output == nil {
		r.Output = &structpb.Struct{}
	}
	return r
}

// omitFields removes fields from a JSON object and keeps the order of the others.
func omitFields(text []byte, keys []string) ([]byte, error) {
	if len(keys) == 0 {
		return text, nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	rest := make([]byte, 0, len(text))
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		if slices.Contains(keys, key.(string)) {
			continue
		}
		name, err := json.Marshal(key)
		if err != nil {
			return nil, err
		}
		before := byte(',')
		if len(rest) == 0 {
			before = '{'
		}
		rest = append(append(append(append(rest, before), name...), ':'), value...)
	}
	if len(rest) == 0 {
		rest = append(rest, '{')
	}
	return append(rest, '}'), nil
}

// Indented returns compact JSON on several lines. All lines but the first begin with prefix.
func Indented(text []byte, prefix string) []byte {
	var pretty bytes.Buffer
	// Indent fails only if text is not JSON.
	_ = json.Indent(&pretty, text, prefix, "  ")
	return pretty.Bytes()
}
