package child

import (
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/core/flight"
)

// preparedAtOnce is the most children that one call prepares.
const preparedAtOnce = 32

// Owner is what a child workflow works for: the unit of a task of type run, or else a partition with this number.
type Owner struct {
	Unit      *flight.Unit
	Partition int
}

// Child is a child workflow, from the request for it until its end. Only a State changes it.
type Child struct {
	Owner
	ID      string // of the workflow; "" until it is prepared
	Summary string // of a partition, for people who read the history
	request *historyv1.ChildRequest

	isOpen, isClosing, isCancelled bool
	why                            string // why it was cancelled, in one line; may be empty
	now                            bool   // it was cancelled with its finally
}

// State holds the child workflows of a run and the workflows whose end it waits for. It is not safe for concurrent use.
type State struct {
	children  map[Owner]*Child
	wanted    []*Child // in the order of preparation
	preparing bool
	started   map[string]*Child   // started children that have not ended, by workflow ID
	awaited   map[string]*awaited // by workflow ID
	changed   bool                // the running Await does not watch all of awaited
}

// awaited is a workflow whose end Await reports.
type awaited struct {
	child *Child // nil for the parent
	run   *historyv1.AwaitedRun
}

// New returns the state of a run without children.
func New() *State {
	return &State{children: map[Owner]*Child{}, started: map[string]*Child{}, awaited: map[string]*awaited{}}
}

// CanDetach reports whether the next execution of the run can reattach every child.
func (s *State) CanDetach() bool {
	if len(s.wanted) > 0 || s.preparing {
		return false
	}
	//workflowcheck:ignore (whether all can does not depend on the order)
	for _, c := range s.started {
		if !c.isOpen || c.isClosing || c.isCancelled {
			return false
		}
	}
	return true
}

// Want queues a child for preparation and start.
func (s *State) Want(owner Owner, request *historyv1.ChildRequest, summary string) {
	c := &Child{Owner: owner, request: request, Summary: summary}
	s.children[owner] = c
	s.wanted = append(s.wanted, c)
}

// Reattach continues with a child that the previous execution started.
func (s *State) Reattach(owner Owner, id, first string, now time.Time) []Effect {
	c := &Child{Owner: owner, ID: id, isOpen: true}
	s.children[owner], s.started[id] = c, c
	return s.await(&awaited{child: c, run: &historyv1.AwaitedRun{WorkflowId: id, First: first}}, now)
}

// AwaitParent waits for the end of the workflow that has started this one, given its first execution.
func (s *State) AwaitParent(id, first string, self *historyv1.AwaitingChild, now time.Time) []Effect {
	return s.await(&awaited{run: &historyv1.AwaitedRun{WorkflowId: id, First: first, Child: self}}, now)
}

func (s *State) await(a *awaited, now time.Time) []Effect {
	a.run.Since = timestamppb.New(now)
	s.awaited[a.run.GetWorkflowId()] = a
	s.changed = true
	return []Effect{Wake{}}
}

// Next ends the wanted children that were cancelled, and prepares others, a bounded number at a time.
func (s *State) Next() (effects []Effect) {
	s.wanted = slices.DeleteFunc(s.wanted, func(c *Child) bool {
		if c.isCancelled {
			effects = append(effects, s.over(c, nil))
		}
		return c.isCancelled
	})
	if s.preparing || len(s.wanted) == 0 {
		return effects
	}
	n := min(len(s.wanted), preparedAtOnce)
	now := slices.Clone(s.wanted[:n]) // meanwhile the others may be cancelled and leave the list
	s.wanted = s.wanted[n:]
	req := &historyv1.PrepareRequest{}
	for _, c := range now {
		req.Children = append(req.Children, c.request)
	}
	s.preparing = true
	return append(effects, Prepare{now, req})
}

// Prepared starts children that have been prepared, in their order. failure says why none could be prepared, or is "".
func (s *State) Prepared(children []*Child, res *historyv1.PrepareResponse, failure string) (effects []Effect) {
	s.preparing = false
	for k, c := range children {
		why := failure
		if why == "" {
			why = res.GetChildren()[k].GetError()
		}
		switch {
		case c.isCancelled:
			effects = append(effects, s.over(c, nil))
		case why != "":
			effects = append(effects, s.refuse(c, why))
		default:
			prepared := res.GetChildren()[k]
			again := c.ID == prepared.GetId()
			c.ID = prepared.GetId()
			s.started[c.ID] = c
			effects = append(effects, Start{c, prepared, again})
		}
	}
	return append(effects, Wake{}) // there may be more children
}

// AlreadyStarted tells that a workflow with the ID of a child was there before its start. After a reset between Prepare and the
// start, the existing child belongs to the terminated execution, and a child with an ID of its own is prepared.
func (s *State) AlreadyStarted(start Start) []Effect {
	c := start.Child
	delete(s.started, c.ID)
	if start.Again {
		return []Effect{s.refuse(c, "workflow "+c.ID+" exists already; it is not a child of this run")}
	}
	s.wanted = append(s.wanted, c)
	return []Effect{Wake{}}
}

// Opened records that a child runs, with the ID of its first execution.
func (s *State) Opened(c *Child, first string) []Effect {
	c.isOpen, c.request = true, nil
	effects := []Effect{Opened{c.Owner, first}}
	if c.isCancelled {
		effects = append(effects, Cancel{c.ID, c.why, c.now})
	}
	return effects
}

// Ended records the end of a child that has started.
func (s *State) Ended(c *Child, end *historyv1.RunEnd) []Effect {
	if s.started[c.ID] != c {
		return nil // its end is reported twice
	}
	delete(s.started, c.ID)
	return []Effect{Wake{}, s.over(c, end)} // other children may now start
}

// Closing records that the child of an owner has reported its end and is about to close.
func (s *State) Closing(owner Owner) { s.children[owner].isClosing = true }

// Cancel cancels the child of an owner, even one that is not open yet; with now also its `finally`. It does nothing if the child has
// ended, because its owner may still wait for the result, or if the child was cancelled in that way before.
func (s *State) Cancel(owner Owner, why string, now bool) (effects []Effect) {
	c := s.children[owner]
	if c == nil || c.isCancelled && (c.now || !now) {
		return nil
	}
	c.isCancelled, c.why, c.now = true, why, now
	if c.isOpen {
		effects = append(effects, Cancel{c.ID, why, now})
	}
	return append(effects, Wake{})
}

// Awaiting renews the wait for workflows that this execution did not start, if they have changed.
func (s *State) Awaiting() []Effect {
	if !s.changed {
		return nil
	}
	s.changed = false
	if len(s.awaited) == 0 {
		return []Effect{Await{}}
	}
	req := &historyv1.AwaitRunsRequest{}
	//workflowcheck:ignore (the keys are sorted)
	for _, id := range slices.Sorted(maps.Keys(s.awaited)) {
		req.Runs = append(req.Runs, s.awaited[id].run)
	}
	return []Effect{Await{req}}
}

// AwaitEnded applies the ends that the newest Await has reported. It awaits the others again.
func (s *State) AwaitEnded(ends []*historyv1.RunEnd) (effects []Effect) {
	s.changed = true
	for _, end := range ends {
		a := s.awaited[end.GetWorkflowId()]
		switch delete(s.awaited, end.GetWorkflowId()); {
		case a == nil:
		case a.child == nil:
			effects = append(effects, ParentEnded{})
		default:
			effects = append(effects, s.Ended(a.child, end)...)
		}
	}
	return append(effects, Wake{})
}

func (s *State) refuse(c *Child, why string) Effect {
	delete(s.children, c.Owner)
	return Refused{c.Owner, why}
}

func (s *State) over(c *Child, end *historyv1.RunEnd) Effect {
	delete(s.children, c.Owner)
	return Over{c.Owner, end}
}
