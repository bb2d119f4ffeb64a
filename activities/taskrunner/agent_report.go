package taskrunner

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"switchyard/activities/executor"
	historyv1 "switchyard/proto/switchyard/history/v1"
)

const (
	// maxAgentEvents and maxAgentEventBytes bound the agent events in an answer. minAgentEventBytes is the share that
	// always travels, even in a run with many tasks.
	maxAgentEvents     = 100
	maxAgentEventBytes = 16 << 10
	minAgentEventBytes = 4 << 10
	// maxAgentText bounds each text of an agent event, in bytes.
	maxAgentText = 300
)

// addAgentReport adds an agent's usage and events to an answer, with the values of secrets masked. An attempt that is
// handed back reports only its events; the next attempt reports the usage.
func (w *work) addAgentReport(res *historyv1.ExecuteResponse, report *executor.AgentReport) {
	if report == nil {
		return
	}
	if res.Result != nil {
		res.Result.Agent = report.Usage
	}
	limit := min(max(int(w.attempt.req.GetInlineLimit()), minAgentEventBytes), maxAgentEventBytes)
	res.AgentEvents = newestAgentEvents(report.Events, limit, w.secrets.masks.Text)
}

// newestAgentEvents returns the newest events that fit into limit bytes together, with their texts masked and cut.
func newestAgentEvents(events []*historyv1.AgentEvent, limit int, mask func(string) string) []*historyv1.AgentEvent {
	var kept []*historyv1.AgentEvent
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
