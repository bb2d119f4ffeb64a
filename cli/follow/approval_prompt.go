package follow

import (
	"fmt"

	"switchyard/cli/client"
	"switchyard/cli/tui"
	v1 "switchyard/proto/switchyard/v1"
)

// approvalPrompt prints how to approve the tasks that wait for approval.
type approvalPrompt struct {
	terminal *Terminal
	gateway  string // URL
	waiting  map[string]bool
}

func (p *approvalPrompt) changed(b *tui.Status, changes []tui.Change) error {
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
		if p.gateway != client.DefaultURL {
			where = " --gateway " + p.gateway
		}
		if _, err := fmt.Fprintf(p.terminal.Screen, "task %[1]s waits for approval: switchyard runs approve %[2]s %[1]s%[3]s (or reject)\n", c.Name, b.Run().GetId(), where); err != nil {
			return err
		}
	}
	return nil
}

func (*approvalPrompt) tick(*tui.Status) error  { return nil }
func (*approvalPrompt) ended(*tui.Status) error { return nil }
