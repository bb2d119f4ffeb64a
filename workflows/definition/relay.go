package definition

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/condition"
	"switchyard/workflows/definition/source"
)

// sessionTimeout is how long a message waits for a session that no node has.
const sessionTimeout = 30 * time.Second

// relayRules checks the specs of tasks of type claude_relay.
type relayRules struct{ *decoder }

// check checks the spec of a task of type claude_relay.
func (r relayRules) check(spec *v1.ClaudeRelaySpec, p *source.Path) {
	r.notBlank(spec.GetPrompt(), p.Field("prompt"))
	target := p.Field("targetSessionId")
	if condition.HasTemplate(spec.GetTargetSessionId()) {
		r.Add(r.locate(target), target, "spec.targetSessionId has an expression; the session must be known when the task is placed", "write its name from `switchyard agent sessions`")
		return
	}
	r.word(spec.GetTargetSessionId(), target, v1.IsSessionID, "not a valid session name", "at most 64 letters, digits, '.', '_' and '-', the first a letter or digit")
}

// targetSession returns the session that a task sends a message to, or "" if it sends none.
func targetSession(task *v1.TaskDefinition) string {
	if task.GetType() != v1.TypeClaudeRelay {
		return ""
	}
	return task.GetSpec().GetFields()["targetSessionId"].GetStringValue()
}

// PlacementTimeout returns how long a task waits while no node could ever run it, or nil if there is no limit. run is the limit
// that the run sets.
func PlacementTimeout(task *v1.TaskDefinition, run *durationpb.Duration) *durationpb.Duration {
	if set := run.AsDuration(); task.GetType() == v1.TypeClaudeRelay && (set <= 0 || set > sessionTimeout) {
		return durationpb.New(sessionTimeout)
	}
	return run
}

// PlacementReason returns the reason for the failure of a task that no node could ever run.
func PlacementReason(task *v1.TaskDefinition) string {
	if task.GetType() == v1.TypeClaudeRelay {
		return v1.ReasonNoSession
	}
	return v1.ReasonPlacementTimeout
}
