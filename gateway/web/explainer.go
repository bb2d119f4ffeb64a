package web

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
)

const (
	// firstExplanation is how long a new page waits for its first explanation.
	firstExplanation = 1500 * time.Millisecond
	// maxVerdicts bounds the nodes listed on a page.
	maxVerdicts = 100
)

// explainer asks in the background why a task is where it is, because the answer may take seconds. Its methods are for a
// single goroutine.
type explainer struct {
	ask func(ctx context.Context) (*v1.ExplainTaskResponse, error)

	cancel context.CancelFunc
	wg     sync.WaitGroup
	about  string // subject of the last question
	asked  time.Time

	mu      sync.Mutex
	asking  bool
	answer  *v1.ExplainTaskResponse
	failure error
}

// get returns the latest answer, or nil if there is none. It asks again if the subject has changed, or after explainInterval
// if again is set.
func (e *explainer) get(ctx context.Context, about string, again bool) (*v1.ExplainTaskResponse, error) {
	e.mu.Lock()
	asking := e.asking
	e.mu.Unlock()
	isFirst := e.asked.IsZero()
	if due := about != e.about || again && time.Since(e.asked) >= explainInterval; due && !asking {
		e.start(ctx, about, isFirst)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.answer, e.failure
}

// start asks in the background. It waits up to firstExplanation for the answer to the first question.
func (e *explainer) start(ctx context.Context, about string, isFirst bool) {
	if e.cancel != nil {
		e.cancel()
	}
	ctx, e.cancel = context.WithCancel(context.WithoutCancel(ctx))
	e.about, e.asked = about, time.Now()
	e.mu.Lock()
	e.asking = true
	e.mu.Unlock()
	done := make(chan struct{})
	e.wg.Go(func() {
		defer close(done)
		answer, err := e.ask(ctx)
		e.mu.Lock()
		defer e.mu.Unlock()
		e.asking, e.failure = false, err
		if err == nil {
			e.answer = answer
		}
	})
	if isFirst {
		select {
		case <-done:
		case <-time.After(firstExplanation):
		}
	}
}

// close cancels a pending question and waits for it to end.
func (e *explainer) close() {
	if e.cancel != nil {
		e.cancel()
	}
	e.wg.Wait()
}

// assignments caches the last assignment event of a task.
type assignments struct {
	about string
	last  *v1.Event
}

// load reads the events again if about has changed. On error it returns the cached event.
func (a *assignments) load(ctx context.Context, s services, run, task, about string) *v1.Event {
	if a.about == about {
		return a.last
	}
	var last *v1.Event
	for token := ""; ; {
		res, err := s.runs.ListRunEvents(ctx, connect.NewRequest(&v1.ListRunEventsRequest{Id: run, Task: task, Event: v1.EventAssigned, PageToken: token}))
		if err != nil {
			return a.last
		}
		if items := res.Msg.GetItems(); len(items) > 0 {
			last = items[len(items)-1]
		}
		if token = res.Msg.GetNextPageToken(); token == "" {
			a.about, a.last = about, last
			return last
		}
	}
}

// whyView explains why a task is where it is.
type whyView struct {
	// Waits reports whether the task waits. If it does, Nodes shows what rules each node out, otherwise what each node
	// offers now.
	Waits  bool
	Reason string
	Node   string
	// Score and Parts are the score of its node at the time of placement.
	Score string
	Parts []scorePart
	At    *timestamppb.Timestamp
	Nodes []verdict
	More  int // nodes not shown
	Ends  []*v1.ParentEnd
	// Unknown is why there is no answer, or "".
	Unknown string
	Pending bool
}

// scorePart is a term of a score.
type scorePart struct{ Name, Value string }

// verdict is the assessment of a node by placement.
type verdict struct {
	Name     string
	Feasible bool
	Chosen   bool
	Score    string
	Parts    []scorePart
	Reasons  []string
}

// explain returns the explanation of the current state of a task.
func (s *taskSource) explain(ctx context.Context, t *v1.Task) whyView {
	view := whyView{Waits: v1.IsTaskWaiting(t.GetState()) || t.GetState() == v1.TaskPaused && t.GetNode() == "", Node: t.GetNode(), Reason: t.GetError()}
	hasEnded, about := v1.HasTaskEnded(t), fmt.Sprint(t.GetState(), t.GetAttempt(), t.GetNode(), t.GetHeld())
	if t.GetNode() != "" && !view.Waits {
		view.Reason = ""
		if e := s.events.load(ctx, s.w.services, s.run.GetId(), s.name, about); e != nil && e.GetNode() == t.GetNode() {
			view.Reason, view.At = e.GetDetail(), e.GetAt()
			view.Score, view.Parts = parseScore(e.GetDetail())
		}
		if hasEnded {
			return view
		}
	}
	if t.Count != nil {
		view.Reason = cmp.Or(t.GetNotice(), view.Reason)
		return view // the instances are placed, not the task
	}
	answer, err := s.reasons.get(ctx, about, view.Waits)
	switch {
	case answer == nil && err != nil:
		view.Unknown = messageOf(err)
		return view
	case answer == nil:
		view.Pending = true
		return view
	}
	if view.Waits || view.Reason == "" {
		view.Reason = cmp.Or(answer.GetReason(), view.Reason)
	}
	view.Ends = answer.GetParents()
	view.Nodes, view.More = verdicts(answer)
	return view
}

// parseScore parses the score and its parts in an assignment event, such as "score 87.3: cpu 29.1, tasks -5.0".
func parseScore(detail string) (score string, parts []scorePart) {
	text, ok := strings.CutPrefix(detail, "score ")
	score, list, hasParts := strings.Cut(text, ": ")
	if !ok || !hasParts {
		return "", nil
	}
	for part := range strings.SplitSeq(list, ", ") {
		name, value, ok := strings.Cut(part, " ")
		if !ok {
			return "", nil
		}
		parts = append(parts, scorePart{name, value})
	}
	return score, parts
}

// verdicts returns the assessments of the nodes, best first, and the number of nodes left out.
func verdicts(answer *v1.ExplainTaskResponse) ([]verdict, int) {
	nodes := slices.SortedStableFunc(slices.Values(answer.GetNodes()), func(a, b *v1.NodeVerdict) int {
		if a.GetFeasible() != b.GetFeasible() {
			if a.GetFeasible() {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(b.GetScore(), a.GetScore()), cmp.Compare(a.GetName(), b.GetName()))
	})
	shown := nodes[:min(len(nodes), maxVerdicts)]
	rows := make([]verdict, 0, len(shown))
	for _, n := range shown {
		row := verdict{Name: n.GetName(), Feasible: n.GetFeasible(), Chosen: n.GetName() == answer.GetChosen(), Reasons: n.GetReasons()}
		if n.GetFeasible() {
			row.Score = fmt.Sprintf("%.1f", n.GetScore())
			for _, p := range n.GetParts() {
				row.Parts = append(row.Parts, scorePart{p.GetName(), fmt.Sprintf("%.1f", p.GetValue()+0)}) // + 0 turns -0 into 0
			}
		}
		rows = append(rows, row)
	}
	return rows, len(nodes) - len(shown)
}
