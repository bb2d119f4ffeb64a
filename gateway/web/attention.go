package web

import (
	"fmt"
	"net/url"

	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
)

// maxAttentionLines bounds the lines of an attention block.
const maxAttentionLines = 5

// attention is a current problem with the things that have it.
type attention struct {
	id        string
	Tone      string // CSS class: bad, wait or idle
	Text, URL string
	Lines     []attentionLine
	More      int // lines left out
}

// LiveID returns the id of the block.
func (a attention) LiveID() string { return "attention-" + a.id }

// attentionLine is one of the things that have a problem.
type attentionLine struct {
	Text, URL string
	Note      string
	At        *timestamppb.Timestamp
}

// add adds a line, or counts it in More if there is no room.
func (a *attention) add(line attentionLine) {
	if len(a.Lines) == maxAttentionLines {
		a.More++
		return
	}
	a.Lines = append(a.Lines, line)
}

// attentions returns the current problems found in the parts of the overview, worst first. A part that cannot be read counts
// as a problem.
func attentions(loaded []loadedPart) []attention {
	var all []attention
	for _, of := range []struct {
		part int
		what string // that is unknown if the part fails
		find func(data any) []attention
	}{
		{partNodes, "The state of the nodes", badNodes},
		{partLost, "Which tasks are lost", lostAttention},
		{partFailures, "Which runs have failed", failedRuns},
		{partDeadLetters, "Which tasks are dead letters", deadLetterAttention},
		{partQueue, "What waits for a node", waitingGroups},
		{partApprovals, "Which tasks wait for an approval", approvalAttention},
		{partApprovalRuns, "Which runs wait for an approval", approvalRunAttention},
		{partSchedules, "How the schedules are doing", badSchedules},
	} {
		switch p := loaded[of.part]; {
		case p.err != nil:
			all = append(all, attention{id: fmt.Sprintf("unknown-%d", of.part), Tone: "idle", Text: of.what + " is unknown: " + words.OneLine(messageOf(p.err))})
		case p.data != nil:
			all = append(all, of.find(p.data)...)
		}
	}
	return all
}

func failedRuns(data any) []attention {
	res := data.(*v1.ListRunsResponse)
	n := max(int(res.GetTotals()[v1.RunFailed]), len(res.GetItems()))
	if n == 0 {
		return nil
	}
	a := attention{id: v1.RunFailed, Tone: "bad", Text: plural(n, "run") + " of the last 24 hours failed", URL: "/ui/runs?since=24h&state=failed"}
	for _, run := range res.GetItems() {
		a.add(attentionLine{run.GetId(), runURL(run.GetId()), words.OneLine(run.GetError()), run.GetCompletedAt()})
	}
	a.More = n - len(a.Lines)
	return []attention{a}
}

func deadLetterAttention(data any) []attention {
	res := data.(*v1.ListDeadLettersResponse)
	if len(res.GetItems()) == 0 {
		return nil
	}
	text := plural(len(res.GetItems()), "task")
	if res.GetNextPageToken() != "" {
		text = fmt.Sprintf("%d or more tasks", len(res.GetItems()))
	}
	a := attention{id: "dead", Tone: "bad", Text: text + " used up all retries", URL: "/ui/dead-letters"}
	for _, l := range res.GetItems() {
		a.add(attentionLine{l.GetTask() + " of " + l.GetRun(), taskURL(l.GetRun(), l.GetTask()), words.OneLine(l.GetError()), l.GetDeadLetteredAt()})
	}
	return []attention{a}
}

func lostAttention(data any) []attention {
	var lost []attention
	away := attention{id: "away", Tone: "bad", URL: "/ui/nodes?state=offline"}
	ended := attention{id: v1.TaskLost, Tone: "bad"}
	nAway, nEnded := 0, 0
	for _, t := range data.(*v1.ListTasksResponse).GetItems() {
		line := attentionLine{t.GetTask() + " of " + t.GetRun(), taskURL(t.GetRun(), t.GetTask()), words.OneLine(t.GetError()), t.GetStartedAt()}
		if t.GetCompletedAt() == nil {
			nAway++
			away.add(line)
			continue
		}
		nEnded++
		line.At = t.GetCompletedAt()
		ended.add(line)
	}
	if nAway > 0 {
		away.Text = plural(nAway, "task") + " lost until the node is back"
		lost = append(lost, away)
	}
	if nEnded > 0 {
		ended.Text = plural(nEnded, "task") + " of the last 24 hours lost with the node"
		lost = append(lost, ended)
	}
	return lost
}

func approvalAttention(data any) []attention {
	res := data.(*v1.ListTasksResponse)
	if len(res.GetItems()) == 0 {
		return nil
	}
	count := countApprovals(loadedPart{data: res, isLoaded: true})
	a := attention{id: "approvals", Tone: "wait", Text: count.Text() + " tasks wait for an approval", URL: "/ui/approvals"}
	if count.N == 1 && !count.IsMore {
		a.Text = "1 task waits for an approval"
	}
	for _, t := range res.GetItems() {
		a.add(attentionLine{t.GetTask() + " of " + t.GetRun(), taskURL(t.GetRun(), t.GetTask()), words.OneLine(t.GetError()), sinceWhen(t)})
	}
	return []attention{a}
}

func approvalRunAttention(data any) []attention {
	res := data.(*v1.ListRunsResponse)
	if len(res.GetItems()) == 0 {
		return nil
	}
	count := countedPart{N: len(res.GetItems()), IsMore: res.GetNextPageToken() != ""}
	a := attention{id: "approval-runs", Tone: "wait", Text: count.Text() + " runs wait for an approval", URL: "/ui/approvals"}
	if count.N == 1 && !count.IsMore {
		a.Text = "1 run waits for an approval"
	}
	for _, run := range res.GetItems() {
		a.add(attentionLine{run.GetId(), runURL(run.GetId()), "", run.GetCreatedAt()})
	}
	return []attention{a}
}

// waitingGroups returns the groups of tasks that wait for a node. Tasks that no online node could run come first.
func waitingGroups(data any) []attention {
	var never, busy attention
	never = attention{id: "impossible", Tone: "bad", URL: "/ui/queue"}
	busy = attention{id: "busy", Tone: "wait", URL: "/ui/queue"}
	nNever, nBusy := int32(0), int32(0)
	for _, g := range data.(*v1.GetQueueResponse).GetGroups() {
		line := attentionLine{plural(g.GetCount(), "task") + demandClause(g.GetDemand()), "/ui/queue", words.OneLine(g.GetText()), g.GetOldestQueuedAt()}
		if examples := g.GetExamples(); g.GetCount() == 1 && len(examples) == 1 {
			line.Text, line.URL = examples[0].GetTask()+" of "+examples[0].GetRun(), taskURL(examples[0].GetRun(), examples[0].GetTask())
		}
		switch g.GetReason() {
		case v1.WaitAway, v1.WaitImpossible:
			nNever += g.GetCount()
			never.add(line)
		case v1.WaitBusy:
			nBusy += g.GetCount()
			busy.add(line)
		}
	}
	var found []attention
	if nNever > 0 {
		never.Text = plural(nNever, "task") + " that no online node could run"
		found = append(found, never)
	}
	if nBusy > 0 {
		busy.Text = plural(nBusy, "task") + " that must wait until a node has room"
		found = append(found, busy)
	}
	return found
}

// demandClause returns a clause with the resource demand of tasks, or "" if they have none.
func demandClause(d *v1.TaskDemand) string {
	if text := demandText(d); text != "" {
		return " that ask for " + text
	}
	return ""
}

// badNodes returns the problems of nodes that are out of service or benched.
func badNodes(data any) []attention {
	nodes := data.(*v1.ListNodesResponse).GetItems()
	if len(nodes) == 0 {
		return []attention{{id: "no-nodes", Tone: "bad", Text: "There are no nodes, so no task can run", URL: "/ui/nodes"}}
	}
	var found []attention
	for _, state := range []string{v1.NodeOffline, v1.NodeStale, v1.NodeRestarting, v1.NodeDraining} {
		a := attention{id: "nodes-" + state, Tone: "wait", URL: withParameter("/ui/nodes", "state", state)}
		if state == v1.NodeOffline {
			a.Tone = "bad"
		}
		n := 0
		for _, node := range nodes {
			if node.GetState() == state {
				n++
				a.add(attentionLine{node.GetName(), nodeURL(node.GetName()), words.OneLine(node.GetReason()), node.GetStateSince()})
			}
		}
		if n > 0 {
			a.Text = plural(n, "node") + " " + state
			found = append(found, a)
		}
	}
	benched := attention{id: "nodes-benched", Tone: "wait", URL: "/ui/nodes"}
	for _, node := range nodes {
		if node.GetBenchedUntil() != nil && node.GetState() == v1.NodeActive {
			benched.add(attentionLine{node.GetName(), nodeURL(node.GetName()), "gets no tasks until " + clock(node.GetBenchedUntil()), nil})
		}
	}
	if n := len(benched.Lines) + benched.More; n > 0 {
		benched.Text = plural(n, "node") + " benched because attempts kept failing there"
		found = append(found, benched)
	}
	return found
}

// badSchedules returns the schedules whose last completed run failed.
func badSchedules(data any) []attention {
	failed := attention{id: "schedules-failed", Tone: "bad", URL: "/ui/schedules"}
	for _, s := range data.([]*v1.Schedule) {
		for _, run := range s.GetRuns() { // the newest first
			if !v1.IsRunTerminal(run.GetState()) {
				continue
			}
			if run.GetState() == v1.RunFailed {
				failed.add(attentionLine{s.GetName(), "/ui/schedules/" + url.PathEscape(s.GetName()), "last run " + run.GetRunId(), run.GetCompletedAt()})
			}
			break
		}
	}
	if n := len(failed.Lines) + failed.More; n > 0 {
		failed.Text = plural(n, "schedule") + " whose last run failed"
		return []attention{failed}
	}
	return nil
}
