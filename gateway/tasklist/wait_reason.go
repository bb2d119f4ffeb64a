package tasklist

import (
	"regexp"
	"strings"
	"sync"
	"time"

	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/phrase"
)

// wait is why a task waits: one of v1.WaitReasons and a line of text. The text is "" if the reason is not known yet.
type wait struct{ reason, text string }

// quotaPrefix begins the text of a task that waits for the quota of its owner.
const quotaPrefix = "quota of "

// unknownText is the text for an unknown reason.
const unknownText = "waits for a node or for a slot in its run"

// waitOf returns why a queued task or instance waits. The state of the run takes precedence over the texts of the
// placement queue and of the run's admission.
func waitOf(v *runview.View, task *v1.Task, t attempted, now time.Time) wait {
	switch {
	case t.GetHeld() || task.GetHeld():
		return wait{v1.WaitHeld, phrase.Because("is held back", t.GetError())}
	case v.Run.GetState() == v1.RunPaused:
		return wait{v1.WaitPaused, phrase.Because("its run is paused", v.Run.GetError())}
	case isBackingOff(t, now):
		return wait{v1.WaitBackOff, "waits for its retry after a failure"}
	}
	return waitFromText(t.GetError())
}

// isBackingOff reports whether a task waits for its next retry.
func isBackingOff(t attempted, now time.Time) bool {
	at := t.GetScheduledAfter()
	return at != nil && at.AsTime().After(now)
}

// waitText maps a text with which a run explains that a task waits to a reason and a form without numbers that differ
// from run to run.
type waitText struct {
	pattern string
	reason  string
	text    string // with $1 for the first group of the pattern, or "" to keep the text
}

// waitTexts covers the texts of workflows/admission, workflows/run and activities/placement.
var waitTexts = []waitText{
	{`^no node could ever fit: `, v1.WaitImpossible, ""},
	{`^no node fits until .* is back: `, v1.WaitAway, ""},
	{`^no node (has registered yet|has session |reaches )`, v1.WaitImpossible, ""},
	{`^0 of \d+ nodes `, v1.WaitBusy, ""},
	{`^reserved on (\S+, )*\S+( for \d+ members?)?, expected at `, v1.WaitBusy, ""},
	{`^room for \d+ of \d+ members?`, v1.WaitBusy, ""},
	{`^the nodes have room for \d+ of \d+ members? at most: `, v1.WaitImpossible, ""},
	{`^waits for the requests of `, v1.WaitAsking, ""},
	{`^\d+ of \d+ nodes fit: `, v1.WaitNext, ""},
	{`^waits for \S+: nodes had no room for it`, v1.WaitBusy, ""},
	{"^" + quotaPrefix, v1.WaitLimit, ""},
	{`^waits for the lock `, v1.WaitLock, ""},
	{`^its run has \d+ ahead of it for the lock (".*")$`, v1.WaitLock, "other tasks of its run are ahead of it for lock $1"},
	{`^its task has reached its concurrency `, v1.WaitLimit, "its task has reached its concurrency"},
	{`^its run has reached its maxParallel `, v1.WaitLimit, "its run has reached its maxParallel"},
	{`^its run has reached the limit of open child workflows `, v1.WaitLimit, "its run has reached the limit of open child workflows"},
	{`^its task has \d+ waiting for a node$`, v1.WaitTurn, "others of its task wait for a node first"},
	{`^it is next in its run$`, v1.WaitTurn, ""},
	{`^waits for task .+, which uses workspace `, v1.WaitTurn, ""},
	{`^waits for the old attempt of `, v1.WaitTurn, "waits for its previous attempt to end"},
	{`^the run is paused$`, v1.WaitPaused, "its run is paused"},
	{`^it(s task)? is held$`, v1.WaitHeld, "is held back"},
}

// waitPatterns returns the compiled patterns of waitTexts.
var waitPatterns = sync.OnceValue(func() []*regexp.Regexp {
	var patterns []*regexp.Regexp
	for _, t := range waitTexts {
		patterns = append(patterns, regexp.MustCompile(t.pattern))
	}
	return patterns
})

// waitFromText returns the reason for a text. A text that is not about waiting stems from the previous failure.
func waitFromText(text string) wait {
	text = strings.TrimSpace(text)
	for i, pattern := range waitPatterns() {
		found := pattern.FindStringSubmatchIndex(text)
		if found == nil {
			continue
		}
		if known := waitTexts[i].text; known != "" {
			text = string(pattern.ExpandString(nil, known, text, found))
		}
		return wait{waitTexts[i].reason, text}
	}
	return wait{reason: v1.WaitAsking}
}
