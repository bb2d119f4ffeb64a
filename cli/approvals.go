package cli

import (
	"fmt"

	"switchyard/cli/tui"
	v1 "switchyard/proto/switchyard/v1"
)

// approvals tells how to approve the tasks of a run that wait for it.
type approvals struct {
	sys     *system
	gateway string // URL
	waiting map[string]bool
}

func (p *approvals) changed(b *tui.Board, changes []tui.Change) error {
	for _, c := range changes {
		waits := c.Task.GetState() == v1.TaskPaused && c.Task.GetReason() == v1.ReasonApproval
		if p.waiting[c.Name] == waits {
			continue
		}
		if p.waiting == nil {
			p.waiting = map[string]bool{}
		}
		p.waiting[c.Name] = waits
		if !waits {
			continue
		}
		where := ""
		if p.gateway != defaultGateway {
			where = " --gateway " + p.gateway
		}
		if _, err := fmt.Fprintf(p.sys.screen, "task %[1]s waits for: switchyard runs approve %[2]s %[1]s%[3]s (or reject)\n", c.Name, b.Run().GetId(), where); err != nil {
			return err
		}
	}
	return nil
}

func (*approvals) tick(*tui.Board) error  { return nil }
func (*approvals) ended(*tui.Board) error { return nil }
