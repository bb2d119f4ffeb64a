package follow

import (
	"switchyard/cli/output"
	"switchyard/cli/tui"
)

// taskLine is a change of a task or of an instance as -o jsonl prints it.
type taskLine struct {
	Type        string `json:"type"` // "task" or "instance"
	Run         string `json:"run"`
	Task        string `json:"task"`
	Index       *int   `json:"index,omitempty"` // for an instance
	State       string `json:"state"`
	Reason      string `json:"reason"`
	Node        string `json:"node"`
	Attempt     int32  `json:"attempt"`
	Error       string `json:"error"`
	StartedAt   string `json:"startedAt,omitempty"`
	CompletedAt string `json:"completedAt,omitempty"`
	ExitCode    *int32 `json:"exitCode,omitempty"` // once an attempt has ended
	// For a fanned-out task, the number of instances, in total and by state.
	Count  *int32           `json:"count,omitempty"`
	Counts map[string]int32 `json:"counts,omitempty"`
}

// jsonLines writes each change of a run to standard output.
type jsonLines struct{ terminal *Terminal }

func (p jsonLines) changed(b *tui.Status, changes []tui.Change) error {
	for _, c := range changes {
		line := taskLine{
			Type: "task", Run: b.Run().GetId(), Task: c.Name, State: c.Task.GetState(), Reason: c.Task.GetReason(),
			Node: c.Task.GetNode(), Attempt: c.Task.GetAttempt(), Error: c.Task.GetError(),
			StartedAt: output.Timestamp(c.Task.GetStartedAt()), CompletedAt: output.Timestamp(c.Task.GetCompletedAt()),
		}
		if c.Of != "" {
			line.Type, line.Task, line.Index = "instance", c.Of, &c.Index
		} else {
			line.Count, line.Counts = c.Task.Count, c.Task.GetCounts()
		}
		if c.Task.GetResult() != nil {
			line.ExitCode = &c.Task.Result.ExitCode
		}
		if err := output.WriteLine(p.terminal.Stdout, line); err != nil {
			return err
		}
	}
	return nil
}

func (jsonLines) tick(*tui.Status) error  { return nil }
func (jsonLines) ended(*tui.Status) error { return nil }
