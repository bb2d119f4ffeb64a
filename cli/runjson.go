package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
)

// runWriter writes a run as one JSON document: v1.Run in its JSON form with zero
// values printed, and with a result for every task. It takes the run in pages,
// so that a run that is larger than memory can be written.
type runWriter struct {
	w io.Writer
	// line puts all of it on one line that says what it is, for -o jsonl.
	line bool

	tail  string // what follows the tasks; "" before the first page
	tasks int
}

// page takes some tasks; names grow from page to page.
func (rw *runWriter) page(run *v1.Run) error {
	if rw.tail == "" {
		if err := rw.begin(run); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(run.GetTasks())) {
		text, err := taskJSON(run.GetTasks()[name])
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
		if !rw.line {
			before, colon, text = before+"\n    ", ": ", indented(text, "    ")
		}
		if _, err := fmt.Fprintf(rw.w, "%s%s%s%s", before, key, colon, text); err != nil {
			return err
		}
		rw.tasks++
	}
	return nil
}

// begin writes what stands before the tasks and keeps what stands behind them.
func (rw *runWriter) begin(run *v1.Run) error {
	head := proto.CloneOf(run)
	head.Tasks = nil
	if head.Context == nil {
		head.Context = &structpb.Struct{}
	}
	if head.Input == nil {
		head.Input = &structpb.Struct{}
	}
	text, err := compactJSON(head)
	if err != nil {
		return err
	}
	if rw.line {
		text = append([]byte(`{"type":"run",`), bytes.TrimPrefix(text, []byte("{"))...)
	} else {
		text = indented(text, "")
	}
	// Inside a text the quotes would be escaped, and no field before has fields.
	for _, tasks := range []string{`"tasks":{`, `"tasks": {`} {
		if before, behind, ok := strings.Cut(string(text), tasks); ok {
			rw.tail = behind
			_, err := io.WriteString(rw.w, before+tasks)
			return err
		}
	}
	return errors.New("a run in JSON has no tasks")
}

// end writes the rest.
func (rw *runWriter) end() error {
	tail := rw.tail + "\n"
	if rw.tasks > 0 && !rw.line {
		tail = "\n  " + tail
	}
	_, err := io.WriteString(rw.w, tail)
	return err
}

// taskJSON is a task with a result, and what it has of a fan-out, a cached result
// and the like only if there is such a thing.
func taskJSON(task *v1.Task) ([]byte, error) {
	task.Result = wholeResult(task.GetResult())
	instances := task.GetInstances()
	task.Instances = nil
	text, err := compactJSON(task)
	if err != nil {
		return nil, err
	}
	if task.Count == nil {
		return without(text, append(absent(task), "counts", "instances"))
	}
	if text, err = without(text, append(absent(task), "instances")); err != nil {
		return nil, err
	}
	all := make([][]byte, len(instances))
	for k, i := range instances {
		if all[k], err = instanceJSON(i); err != nil {
			return nil, err
		}
	}
	return slices.Concat(text[:len(text)-1], []byte(`,"instances":[`), bytes.Join(all, []byte(",")), []byte("]}")), nil
}

// instanceJSON is an instance with a result, and what else it has like a task.
func instanceJSON(i *v1.Instance) ([]byte, error) {
	i.Result = wholeResult(i.GetResult())
	text, err := compactJSON(i)
	if err != nil {
		return nil, err
	}
	fields := absent(i)
	if i.GetItem() == "" {
		fields = append(fields, "item")
	}
	return without(text, fields)
}

// absent are the fields that a task or an instance has not, and that its JSON has
// only if there is such a thing.
func absent(of interface {
	GetCachedFrom() string
	GetChildRun() string
	GetHeld() bool
}) []string {
	var fields []string
	for field, there := range map[string]bool{
		"cachedFrom": of.GetCachedFrom() != "", "childRun": of.GetChildRun() != "", "held": of.GetHeld(),
	} {
		if !there {
			fields = append(fields, field)
		}
	}
	return fields
}

// wholeResult is a result with an output; nothing has run where there is none.
func wholeResult(r *v1.TaskResult) *v1.TaskResult {
	if r == nil {
		r = &v1.TaskResult{ExitCode: -1}
	}
	if r.Output == nil {
		r.Output = &structpb.Struct{}
	}
	return r
}

// without leaves some fields out of an object in JSON; the others keep their order.
func without(text []byte, keys []string) ([]byte, error) {
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

// compactJSON leaves out the random spaces that protojson puts between tokens so
// that nobody relies on them.
func compactJSON(m proto.Message) ([]byte, error) {
	text, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(m)
	if err != nil {
		return nil, err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		return nil, err
	}
	return compact.Bytes(), nil
}

// indented is JSON on several lines; all but the first begin with prefix.
func indented(text []byte, prefix string) []byte {
	var pretty bytes.Buffer
	// What has just been compacted is JSON.
	_ = json.Indent(&pretty, text, prefix, "  ")
	return pretty.Bytes()
}

// writeRun writes a run that comes from a gateway page by page.
func (a *api) writeRun(ctx context.Context, id string, rw *runWriter) error {
	if err := a.pages(ctx, &v1.GetRunRequest{Id: id}, rw.page); err != nil {
		return err
	}
	return rw.end()
}
