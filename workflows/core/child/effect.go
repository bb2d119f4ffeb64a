package child

import historyv1 "switchyard/proto/switchyard/history/v1"

// An Effect is what the caller carries out, in the order in which a method of [State] has returned it. Where an effect has an
// answer, its comment names the methods that take it.
type Effect interface{ isEffect() }

type (
	// Wake starts another round even without an event.
	Wake struct{}
	// Prepare prepares children for their start, all in one call: Prepared.
	Prepare struct {
		Children []*Child
		Request  *historyv1.PrepareRequest
	}
	// Start starts a prepared child: Opened and Ended, or AlreadyStarted.
	Start struct {
		Child    *Child
		Prepared *historyv1.PreparedChild
		// Again reports that the child was started under this ID before.
		Again bool
	}
	// Cancel asks the workflow of a child to cancel itself. Why is one line and may be empty.
	Cancel struct {
		ID, Why string
		Now     bool // with its finally
	}
	// Await waits for the ends of exactly these workflows, instead of those of the Await before: AwaitEnded. Without a request it
	// waits for none.
	Await struct{ Request *historyv1.AwaitRunsRequest }
	// Refused tells the owner of a child that it cannot be started.
	Refused struct {
		Owner Owner
		Why   string
	}
	// Opened tells the owner of a child that it runs, with the ID of its first execution.
	Opened struct {
		Owner Owner
		First string
	}
	// Over tells the owner of a child that it has ended. The end is nil if it was cancelled before its start.
	Over struct {
		Owner Owner
		End   *historyv1.RunEnd
	}
	// ParentEnded tells this workflow, which is a child itself, that its parent has ended.
	ParentEnded struct{}
)

func (Wake) isEffect()        {}
func (Prepare) isEffect()     {}
func (Start) isEffect()       {}
func (Cancel) isEffect()      {}
func (Await) isEffect()       {}
func (Refused) isEffect()     {}
func (Opened) isEffect()      {}
func (Over) isEffect()        {}
func (ParentEnded) isEffect() {}
