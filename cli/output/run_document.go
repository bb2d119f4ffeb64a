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

	v1 "switchyard/proto/switchyard/v1"
)

// RunWriter writes a run as one JSON document: v1.Run in its JSON form, with zero
// values and with a result for every task. It takes the run in pages, so that a
// run larger than memory can be written.
type RunWriter struct {
	Out io.Writer
	// OneLine puts the document on one line with a type, for -o jsonl.
	OneLine bool

	tail  string // what follows the tasks, or "" before the first page
	tasks int
}

// WritePage writes the tasks of a page; names ascend from page to page.
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

// writeHead writes what stands before the tasks, and stores what stands behind them in tail.
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
	// Inside a text the quotes would be escaped, and no earlier field has fields.
	for _, tasks := range []string{`"tasks":{`, `"tasks": {`} {
		if before, behind, ok := strings.Cut(string(text), tasks); ok {
			rw.tail = behind
			_, err := io.WriteString(rw.Out, before+tasks)
			return err
		}
	}
	return errors.New("a run in JSON has no tasks")
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

// TaskJSON returns a task in JSON. It always has a result; the fields of fan-outs,
// cached results and the like are there only if the task has such a thing.
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

// InstanceJSON returns an instance in JSON, with the fields that TaskJSON would include.
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

// absentFields returns the optional fields that a task or an instance does not
// have, and that its JSON omits.
func absentFields(of interface {
	GetCachedFrom() string
	GetChildRun() string
	GetHeld() bool
	GetNotice() string
}) []string {
	var fields []string
	for field, there := range map[string]bool{
		"cachedFrom": of.GetCachedFrom() != "", "childRun": of.GetChildRun() != "", "held": of.GetHeld(), "notice": of.GetNotice() != "",
	} {
		if !there {
			fields = append(fields, field)
		}
	}
	return fields
}

// completeResult returns a result with an output. Without a result nothing has run, so its exit code is -1.
func completeResult(r *v1.TaskResult) *v1.TaskResult {
	if r == nil {
		r = &v1.TaskResult{ExitCode: -1}
	}
	if r.Output == nil {
		r.Output = &structpb.Struct{}
	}
	return r
}

// omitFields removes fields from an object in JSON; the other fields keep their order.
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

// Indented returns compact JSON on several lines; all but the first begin with prefix.
func Indented(text []byte, prefix string) []byte {
	var pretty bytes.Buffer
	// An error would mean that text is not JSON.
	_ = json.Indent(&pretty, text, prefix, "  ")
	return pretty.Bytes()
}
