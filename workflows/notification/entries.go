package notification

import (
	"cmp"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// OfRun returns the entries that apply to a run: those of its definition, then those of the fleet. The fleet's do not apply to a run
// that another run has started: its failure is one of its parent.
func OfRun(in *historyv1.RunInput, fleet []*v1.Notification) []*v1.Notification {
	if in.GetParentRun() != "" {
		fleet = nil
	}
	return slices.Concat(in.GetDefinition().GetNotify(), fleet)
}

// maxInput is the largest input of a run, in bytes, that expressions of notifications see.
const maxInput = 64 << 10

// Input returns the input of a run as expressions of notifications see it, or nil if it is too large for them.
func Input(in *historyv1.RunInput) *structpb.Struct {
	if proto.Size(in.GetInput()) > maxInput {
		return nil
	}
	return in.GetInput()
}

// WorkflowID returns the ID of the workflow that tells people about an event.
func WorkflowID(in *historyv1.NotifyInput) string {
	if run := in.GetRun(); run.GetId() != "" {
		return names.NotifyWorkflowID(run.GetId(), run.GetGeneration(), in.GetEvent(), in.GetTask())
	}
	return names.NotifyScheduleID(in.GetRun().GetName(), in.GetAt().AsTime())
}

// About returns the run that an event is about, or else the workflow.
func About(in *historyv1.NotifyInput) string {
	return cmp.Or(in.GetRun().GetId(), in.GetRun().GetName())
}

// Entries returns the entries for an event. An entry for recovered runs is one for completed runs: only [Plan] learns what was before.
// A reminder is for the entries for approvals.
func Entries(all []*v1.Notification, event string) []*v1.Notification {
	var found []*v1.Notification
	for _, entry := range all {
		if slices.Contains(entry.GetOn(), wordOf(event)) || event == v1.NotifyCompleted && slices.Contains(entry.GetOn(), v1.NotifyRecovered) {
			found = append(found, entry)
		}
	}
	return found
}

// IsForRecovered reports whether any entry is for recovered runs.
func IsForRecovered(entries []*v1.Notification) bool {
	return slices.ContainsFunc(entries, func(entry *v1.Notification) bool { return slices.Contains(entry.GetOn(), v1.NotifyRecovered) })
}

// wordFor returns the word of an entry for an event, or "" if the entry is not for it.
func wordFor(entry *v1.Notification, event string, recovered bool) string {
	switch {
	case recovered && slices.Contains(entry.GetOn(), v1.NotifyRecovered):
		return v1.NotifyRecovered
	case slices.Contains(entry.GetOn(), wordOf(event)):
		return wordOf(event)
	}
	return ""
}

// wordOf returns the word by which entries name an event.
func wordOf(event string) string {
	if event == v1.NotifyReminded {
		return v1.NotifyApproval
	}
	return event
}
