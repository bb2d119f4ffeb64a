package definition

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/condition"
	"switchyard/workflows/definition/source"
	"switchyard/workflows/interpreter"
)

// nul reports a text with a NUL character, which ends texts for programs.
func (d *decoder) nul(at source.Position, p *source.Path) {
	d.Add(at, p, p.Local()+" contains a NUL character, which cannot be passed to a program", "")
}

// longTexts reports the variables and the arguments of a task, or of the defaults at p, that are too long for a program. A text with
// a template is checked when an attempt starts.
func (d *decoder) longTexts(spec *structpb.Struct, env map[string]string, p *source.Path) {
	for _, long := range interpreter.LongTexts(spec, env) {
		if !condition.HasTemplate(long.Text) {
			at := stepsBelow(p, long.Path)
			d.Add(d.locate(at), at, at.Local()+" "+long.Fault, long.Hint)
		}
	}
}

// stepsBelow returns the path below p that the steps lead to: names of fields or keys as strings, and indices of lists as ints.
func stepsBelow(p *source.Path, steps []any) *source.Path {
	for _, step := range steps {
		switch step := step.(type) {
		case string:
			p = p.Key(step)
		case int:
			p = p.Item(step)
		}
	}
	return p
}

// heartbeatTimeout checks how long the node of an attempt may be silent.
func (d *decoder) heartbeatTimeout(text string, p *source.Path) {
	d.duration(text, p)
	if _, err := parseDuration(text); text == "" || err != nil {
		return
	}
	if timeout := duration(text); timeout < MinHeartbeatTimeout || timeout > MaxHeartbeatTimeout {
		d.Add(d.locate(p), p, p.Local()+" is "+text+"; it must be 5s to 1h", "")
	}
}

// These are the bounds of a heartbeat time-out: nodes send heartbeats often enough for the smallest one, and a task whose node
// is lost waits no longer than the largest.
const (
	MinHeartbeatTimeout = 5 * time.Second
	MaxHeartbeatTimeout = time.Hour
)

// stop checks how a program is stopped.
func (d *decoder) stop(stop *v1.Stop, at *source.Path) {
	text, p := stop.GetGrace(), at.Field("grace")
	d.durationOr(text, p, "it must be 1s to 10m")
	if grace, err := parseDuration(text); text != "" && err == nil && (grace < MinStopGrace || grace > MaxStopGrace) {
		d.Add(d.locate(p), p, p.Local()+" is "+text+"; it must be 1s to 10m", "signal: SIGKILL ends the program at once")
	}
}

// These are the bounds of the grace of a stop. A worker that stops waits for the longest one of its tasks.
const (
	MinStopGrace = time.Second
	MaxStopGrace = 10 * time.Minute
)

// notBlank reports a text of only spaces where one is required. The model reports an empty text.
func (d *decoder) notBlank(text string, p *source.Path) {
	if text != "" && strings.TrimSpace(text) == "" {
		d.Add(d.locate(p), p, p.Local()+" is blank", "")
	}
}

func (d *decoder) duration(text string, p *source.Path) {
	d.durationOr(text, p, `"0" means no limit`)
}

// durationOr checks a duration. ofZero explains the meaning of "0".
func (d *decoder) durationOr(text string, p *source.Path, ofZero string) {
	if text == "" {
		return
	}
	_, err := parseDuration(text)
	switch {
	case err == nil:
	case errors.Is(err, errNegative):
		d.Add(d.locate(p), p, p.Local()+" is "+text+"; it must not be negative", ofZero)
	default:
		hint := `write a duration such as "90s", "1h30m" or "2d"`
		if _, err := parseDuration(text + "s"); err == nil {
			hint = fmt.Sprintf("a unit is missing; did you mean %q?", text+"s")
		} else if meant := meantDuration(text); meant != "" {
			hint = fmt.Sprintf("did you mean %q?", meant)
		}
		d.Add(d.locate(p), p, p.Local()+" is "+source.Quote(text)+", which is not a duration", hint)
	}
}

// word reports a text that the function good rejects. It skips a text with a template, whose value is not known yet.
func (d *decoder) word(text string, p *source.Path, good func(string) bool, what, hint string) {
	if text == "" || condition.HasTemplate(text) || good(text) {
		return
	}
	d.Add(d.locate(p), p, p.Local()+" is "+source.Quote(text)+", which is "+what, hint)
}

// emptyText reports an empty expression.
func (d *decoder) emptyText(text string, p *source.Path) {
	if strings.TrimSpace(text) == "" {
		d.Fail(d.locate(p), p, p.Local()+" is empty", "")
	}
}
