package child

import (
	"fmt"
	"strings"
	"testing"
	"time"

	historyv1 "switchyard/proto/switchyard/history/v1"
)

var start = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// play drives a State whose children are partitions.
type play struct {
	*State
	t     *testing.T
	said  []string
	batch []*Child         // of the newest Prepare
	begun map[string]Start // by workflow ID
}

func begin(t *testing.T) *play {
	return &play{State: New(), t: t, begun: map[string]Start{}}
}

// do notes what effects say.
func (p *play) do(effects []Effect) {
	for _, effect := range effects {
		switch e := effect.(type) {
		case Wake:
			p.said = append(p.said, "wake")
		case Prepare:
			p.batch = e.Children
			p.said = append(p.said, fmt.Sprint("prepare ", len(e.Request.GetChildren())))
		case Start:
			p.begun[e.Child.ID] = e
			p.said = append(p.said, "start "+e.Child.ID)
		case Cancel:
			p.said = append(p.said, strings.TrimSpace("cancel "+e.ID+" "+e.Why))
		case Await:
			text := "await"
			for _, a := range e.Request.GetRuns() {
				text += " " + a.GetWorkflowId() + "/" + a.GetFirst()
			}
			p.said = append(p.said, text)
		case Refused:
			p.said = append(p.said, fmt.Sprintf("refused %d: %s", e.Owner.Partition, e.Why))
		case Opened:
			p.said = append(p.said, fmt.Sprintf("opened %d: %s", e.Owner.Partition, e.First))
		case Over:
			p.said = append(p.said, strings.TrimSpace(fmt.Sprintf("over %d %s", e.Owner.Partition, e.End.GetStatus())))
		case ParentEnded:
			p.said = append(p.said, "parent ended")
		}
	}
}

// heard checks what the effects since the last check have said.
func (p *play) heard(when, want string) {
	p.t.Helper()
	if got := strings.Join(p.said, ", "); got != want {
		p.t.Errorf("%s: %q, want %q", when, got, want)
	}
	p.said = nil
}

// want asks for partitions and prepares them.
func (p *play) want(numbers ...int) {
	for _, n := range numbers {
		p.Want(Owner{Partition: n}, &historyv1.ChildRequest{Id: fmt.Sprint("w", n)}, "")
	}
	p.do(p.Next())
}

// prepared answers the newest Prepare: each child gets the ID that it asked for, or the error that is given for it.
func (p *play) prepared(faults ...string) {
	res := &historyv1.PrepareResponse{}
	for k, c := range p.batch {
		prepared := &historyv1.PreparedChild{Id: c.request.GetId()}
		if k < len(faults) {
			prepared.Error = faults[k]
		}
		res.Children = append(res.Children, prepared)
	}
	p.do(p.Prepared(p.batch, res, ""))
}

// open starts partitions and opens them.
func (p *play) open(numbers ...int) {
	p.want(numbers...)
	p.prepared()
	for _, n := range numbers {
		p.do(p.Opened(p.begun[fmt.Sprint("w", n)].Child, fmt.Sprint("f", n)))
	}
	p.said = nil
}

func TestLifeOfAChild(t *testing.T) {
	t.Parallel()
	completed := &historyv1.RunEnd{Status: "completed"}
	for name, test := range map[string]struct {
		do        func(p *play)
		said      string
		canDetach bool
	}{
		"wanted":                      {func(p *play) { p.want(1, 2) }, "prepare 2", false},
		"prepared":                    {func(p *play) { p.want(1); p.prepared() }, "prepare 1, start w1, wake", false},
		"wanted during a preparation": {func(p *play) { p.want(1); p.want(2); p.prepared(); p.do(p.Next()) }, "prepare 1, start w1, wake, prepare 1", false},
		"one of two can be started":   {func(p *play) { p.want(1, 2); p.prepared("too deep") }, "prepare 2, refused 1: too deep, start w2, wake", false},
		"none can be prepared":        {func(p *play) { p.want(1); p.do(p.Prepared(p.batch, &historyv1.PrepareResponse{}, "no store")) }, "prepare 1, refused 1: no store, wake", true},
		"open":                        {func(p *play) { p.want(1); p.prepared(); p.do(p.Opened(p.begun["w1"].Child, "f1")) }, "prepare 1, start w1, wake, opened 1: f1", true},
		"ended": {func(p *play) {
			p.open(1)
			c := p.begun["w1"].Child
			p.do(p.Ended(c, completed))
			p.do(p.Ended(c, completed))
		}, "wake, over 1 completed", true},
		"cancelled after its end": {func(p *play) {
			p.open(1)
			p.do(p.Ended(p.begun["w1"].Child, completed))
			p.do(p.Cancel(Owner{Partition: 1}, "enough", false))
		}, "wake, over 1 completed", true},
		"about to close": {func(p *play) { p.open(1); p.Closing(Owner{Partition: 1}) }, "", false},
		"cancelled while it is wanted": {func(p *play) {
			p.want(1)
			p.Want(Owner{Partition: 2}, nil, "")
			p.do(p.Cancel(Owner{Partition: 2}, "", false))
			p.do(p.Next())
		}, "prepare 1, wake, over 2", false},
		"cancelled in preparation": {func(p *play) { p.want(1); p.do(p.Cancel(Owner{Partition: 1}, "", false)); p.prepared() }, "prepare 1, wake, over 1, wake", true},
		"cancelled before it is open": {func(p *play) {
			p.want(1)
			p.prepared()
			p.do(p.Cancel(Owner{Partition: 1}, "enough", false))
			p.do(p.Opened(p.begun["w1"].Child, "f1"))
		}, "prepare 1, start w1, wake, wake, opened 1: f1, cancel w1 enough", false},
		"cancelled twice": {func(p *play) {
			p.open(1)
			p.do(p.Cancel(Owner{Partition: 1}, "enough", false))
			p.do(p.Cancel(Owner{Partition: 1}, "again", false))
		}, "cancel w1 enough, wake", false},
		"reset between its preparation and its start": {func(p *play) {
			p.want(1)
			p.prepared()
			p.do(p.AlreadyStarted(p.begun["w1"]))
			p.do(p.Next())
		}, "prepare 1, start w1, wake, wake, prepare 1", false},
		"another workflow has its ID": {func(p *play) {
			p.want(1)
			p.prepared()
			p.do(p.AlreadyStarted(p.begun["w1"]))
			p.do(p.Next())
			p.prepared()
			p.said = nil
			p.do(p.AlreadyStarted(p.begun["w1"]))
		}, "refused 1: workflow w1 exists already; it is not a child of this run", true},
	} {
		p := begin(t)
		test.do(p)
		p.heard(name, test.said)
		if got := p.CanDetach(); got != test.canDetach {
			t.Errorf("%s: it can be detached: %v", name, got)
		}
	}
}

func TestChildrenArePreparedAFewAtATime(t *testing.T) {
	t.Parallel()
	p := begin(t)
	for n := range preparedAtOnce + 3 {
		p.Want(Owner{Partition: n}, &historyv1.ChildRequest{Id: fmt.Sprint("w", n)}, "")
	}
	p.do(p.Next())
	p.do(p.Next())
	p.heard("first", fmt.Sprint("prepare ", preparedAtOnce))
	p.do(p.Cancel(Owner{Partition: preparedAtOnce + 1}, "", false))
	p.prepared()
	p.said = nil
	p.do(p.Next())
	p.heard("then", fmt.Sprintf("over %d, prepare 2", preparedAtOnce+1))
}

// Children of earlier executions, and the parent of this workflow, are awaited together.
func TestReattachedChildrenAndTheParentAreAwaited(t *testing.T) {
	t.Parallel()
	p := begin(t)
	p.do(p.Awaiting())
	p.do(p.Reattach(Owner{Partition: 2}, "w2", "f2", start))
	p.do(p.Reattach(Owner{Partition: 1}, "w1", "", start))
	p.do(p.AwaitParent("parent", "f0", &historyv1.AwaitingChild{WorkflowId: "self"}, start))
	p.heard("reattached", "wake, wake, wake")
	if !p.CanDetach() {
		t.Error("what was reattached cannot be detached")
	}
	p.do(p.Awaiting())
	p.do(p.Awaiting())
	p.heard("await", "await parent/f0 w1/ w2/f2")
	p.do(p.Cancel(Owner{Partition: 1}, "enough", false))
	p.heard("cancel", "cancel w1 enough, wake")
	p.do(p.AwaitEnded([]*historyv1.RunEnd{{WorkflowId: "w1", Status: "cancelled"}, {WorkflowId: "unknown"}}))
	p.do(p.Awaiting())
	p.heard("one has ended", "wake, over 1 cancelled, wake, await parent/f0 w2/f2")
	p.do(p.AwaitEnded(nil))
	p.do(p.Awaiting())
	p.heard("the call has failed", "wake, await parent/f0 w2/f2")
	p.do(p.AwaitEnded([]*historyv1.RunEnd{{WorkflowId: "parent"}, {WorkflowId: "w2", Status: "completed"}}))
	p.do(p.Awaiting())
	p.heard("all have ended", "parent ended, wake, over 2 completed, wake, await")
}
