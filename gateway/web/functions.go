package web

import (
	"fmt"
	"html/template"
	"net/url"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/drawing/svg"
	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
)

// functions are those of templates.
var functions = template.FuncMap{
	"asset":       assetURL,
	"clock":       clock,
	"since":       func(at *timestamppb.Timestamp) (template.HTML, error) { return timeElement("since", at) },
	"ago":         func(at *timestamppb.Timestamp) (template.HTML, error) { return timeElement("ago", at) },
	"until":       func(at *timestamppb.Timestamp) (template.HTML, error) { return timeElement("until", at) },
	"runURL":      runURL,
	"taskURL":     taskURL,
	"nodeURL":     nodeURL,
	"set":         withParameter,
	"workflowURL": workflowURL,
	"scheduleURL": scheduleURL,
	"plural":      plural,
	"stateTone":   stateTone,
	"sign":        sign,
	"oneLine":     words.OneLine,
	"span":        span,
	"printed":     printed,
	"logMark":     func() template.HTML { return logMark },
	"hatches":     func() template.HTML { return template.HTML(svg.Hatches()) },
	"legend":      func() template.HTML { return template.HTML(svg.Legend()) },
}

// layout of times.
const timeLayout = "2006-01-02 15:04:05 UTC"

// clock returns a time in words, or "".
func clock(at *timestamppb.Timestamp) string {
	if at == nil {
		return ""
	}
	return at.AsTime().Format(timeLayout)
}

// timeElement returns an element of a time that the script shows as a duration: since it ("2m 3s"), how long ago it was ("2m
// ago") or how long it is until then. Without the script it shows the time itself.
func timeElement(kind string, at *timestamppb.Timestamp) (template.HTML, error) {
	if at == nil {
		return "", nil
	}
	t := at.AsTime()
	return template.HTML(fmt.Sprintf(`<time class="t-%s" datetime="%s" data-at="%d" title="%s">%s</time>`,
		kind, t.Format(time.RFC3339), t.UnixMilli(), t.Format(timeLayout), t.Format("15:04:05 UTC"))), nil
}

func runURL(run string) string { return "/ui/runs/" + url.PathEscape(run) }

func taskURL(run, task string) string { return runURL(run) + "/tasks/" + url.PathEscape(task) }

func nodeURL(name string) string { return "/ui/nodes/" + url.PathEscape(name) }

// withParameter returns the address of a view with one parameter set to another value, or without it if the value is "".
func withParameter(address, name, value string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	query := u.Query()
	query.Del("page")
	if query.Set(name, value); value == "" {
		query.Del(name)
	}
	u.RawQuery = query.Encode()
	return u.String()
}

// plural returns a number with its noun: "1 run", "2 runs".
func plural(n any, noun string) string {
	if text := fmt.Sprint(n); text != "1" {
		return text + " " + noun + "s"
	}
	return "1 " + noun
}

// stateTone returns the class of colours of the state of a run, a task or a node.
func stateTone(state string) string {
	switch state {
	case v1.RunCompleted, v1.NodeActive, v1.TaskStopped:
		return "good"
	case v1.RunRunning, v1.TaskAssigned:
		return "busy"
	case v1.RunPaused, v1.RunPendingApproval, v1.TaskQueued, v1.NodeDraining, v1.NodeStale:
		return "wait"
	case v1.RunPending, v1.TaskSkipped, v1.RunCancelled:
		return "idle"
	}
	return "bad"
}

// sign returns one character for the state of a run, a task or a node, for readers who do not see its colour.
func sign(state string) string {
	switch state {
	case v1.RunPendingApproval, v1.NodeDraining:
		return words.Sign(v1.TaskPaused)
	case v1.NodeActive:
		return words.Sign(v1.TaskRunning)
	case v1.NodeStale:
		return words.Sign(v1.TaskLost)
	}
	return words.Sign(state)
}

// span returns the time between two times in words, or "" if one is missing.
func span(from, to *timestamppb.Timestamp) string {
	if from == nil || to == nil {
		return ""
	}
	return words.Duration(to.AsTime().Sub(from.AsTime()))
}
