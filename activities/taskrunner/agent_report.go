package taskrunner

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"switchyard/activities/executor"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// maxAgentEvents and maxAgentEventBytes bound the events of an agent in an answer, and minAgentEventBytes is how many
	// bytes of them travel in a run of many tasks, too.
	maxAgentEvents     = 100
	maxAgentEventBytes = 16 << 10
	minAgentEventBytes = 4 << 10
	// maxAgentText bounds each text of such an event, in bytes.
	maxAgentText = 300
)

// addAgentReport adds to an answer what an agent has done, without the values of secrets. An attempt that is handed back
// reports its events, and leaves what it has used to the next one.
func (w *work) addAgentReport(res *v1.ExecuteResponse, report *executor.AgentReport) {
	if report == nil {
		return
	}
	if res.Result != nil {
		res.Result.Agent = report.Usage
	}
	limit := min(max(int(w.attempt.req.GetInlineLimit()), minAgentEventBytes), maxAgentEventBytes)
	res.AgentEvents = newestAgentEvents(report.Events, limit, w.secrets.masks.Text)
}

// newestAgentEvents returns the newest events that take at most limit bytes together, with their texts masked and cut.
func newestAgentEvents(events []*v1.AgentEvent, limit int, mask func(string) string) []*v1.AgentEvent {
	var kept []*v1.AgentEvent
	for _, e := range slices.Backward(events) {
		e = proto.CloneOf(e)
		e.Tool, e.Error = cutAgentText(mask(e.GetTool())), cutAgentText(mask(e.GetError()))
		if limit -= proto.Size(e); limit < 0 || len(kept) == maxAgentEvents {
			break
		}
		kept = append(kept, e)
	}
	slices.Reverse(kept)
	return kept
}

func cutAgentText(text string) string {
	if len(text) <= maxAgentText {
		return strings.ToValidUTF8(text, "�")
	}
	return strings.ToValidUTF8(text[:maxAgentText], "")
}
