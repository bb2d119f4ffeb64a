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

// functions are the template functions.
var functions = template.FuncMap{
	"asset":       assetURL,
	"clock":       clock,
	"since":       func(at *timestamppb.Timestamp) (template.HTML, error) { return timeElement("since", at) },
	"ago":         func(at *timestamppb.Timestamp) (template.HTML, error) { return timeElement("ago", at) },
	"until":       func(at *timestamppb.Timestamp) (template.HTML, error) { return timeElement("until", at) },
	"runURL":      runURL,
	"taskURL":     taskURL,
	"nodeURL":     nodeURL,
	"artifactURL": artifactURL,
	"size":        words.Size,
	"set":         withParameter,
	"workflowURL": workflowURL,
	"scheduleURL": scheduleURL,
	"plural":      plural,
	"stateTone":   stateTone,
	"sign":        stateSign,
	"oneLine":     words.OneLine,
	"span":        durationBetween,
	"printed":     outputHTML,
	"logMark":     func() template.HTML { return logMark },
	"hatches":     func() template.HTML { return template.HTML(svg.Hatches()) },
	"legend":      func() template.HTML { return template.HTML(svg.Legend()) },
}

// timeLayout is the layout of displayed times.
const timeLayout = "2006-01-02 15:04:05 UTC"

// clock formats a time, or returns "" for nil.
func clock(at *timestamppb.Timestamp) string {
	if at == nil {
		return ""
	}
	return at.AsTime().Format(timeLayout)
}

// timeElement returns a time element that the script shows as a duration: the time since ("2m 3s"), how long ago ("2m ago")
// or until. Without script it shows the time itself.
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

// withParameter returns a view address with one parameter set, or removed if the value is "". It drops the page parameter.
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

// plural returns a number with its noun, such as "1 run" or "2 runs".
func plural(n any, noun string) string {
	if text := fmt.Sprint(n); text != "1" {
		return text + " " + noun + "s"
	}
	return "1 " + noun
}

// stateTone returns the CSS class for the state of a run, task or node.
func stateTone(state string) string {
	switch state {
	case v1.RunCompleted, v1.NodeActive, v1.TaskStopped:
		return "good"
	case v1.RunRunning, v1.TaskAssigned:
		return "busy"
	case v1.RunPaused, v1.RunPendingApproval, v1.TaskQueued, v1.NodeDraining, v1.NodeRestarting, v1.NodeStale:
		return "wait"
	case v1.RunPending, v1.TaskSkipped, v1.RunCancelled:
		return "idle"
	}
	return "bad"
}

// stateSign returns one character for the state of a run, task or node, for readers who cannot see its colour.
func stateSign(state string) string {
	switch state {
	case v1.RunPendingApproval, v1.NodeDraining, v1.NodeRestarting:
		return words.Sign(v1.TaskPaused)
	case v1.NodeActive:
		return words.Sign(v1.TaskRunning)
	case v1.NodeStale:
		return words.Sign(v1.TaskLost)
	}
	return words.Sign(state)
}

// durationBetween formats the duration between two times, or returns "" if one is missing.
func durationBetween(from, to *timestamppb.Timestamp) string {
	if from == nil || to == nil {
		return ""
	}
	return words.Duration(to.AsTime().Sub(from.AsTime()))
}
