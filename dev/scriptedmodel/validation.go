package scriptedmodel

import (
	"errors"
	"fmt"
	"slices"
)

// Validate returns all problems of the script as a joined error, or nil.
func (s Script) Validate() error {
	var problems []error
	if len(s.Rules) == 0 {
		problems = append(problems, errors.New("rules: the script has none; a rule without `when` answers every request"))
	}
	for i, rule := range s.Rules {
		for _, problem := range rule.problems() {
			problems = append(problems, fmt.Errorf("rules[%d].%w", i, problem))
		}
		if rule.When == (When{}) && i < len(s.Rules)-1 {
			problems = append(problems, fmt.Errorf("rules[%d].when: missing, so the rule matches every request and hides those after it", i))
		}
	}
	return errors.Join(problems...)
}

// problems returns the problems of a rule.
func (r Rule) problems() []error {
	var found []error
	add := func(wrong bool, format string, args ...any) {
		if wrong {
			found = append(found, fmt.Errorf(format, args...))
		}
	}
	add(r.When.Turns != nil && *r.When.Turns < 0, "when.turns: must not be negative")
	for i, call := range r.Reply.ToolCalls {
		add(call.Name == "", "reply.toolCalls[%d].name: missing", i)
	}
	if u := r.Reply.Usage; u != nil {
		add(min(u.Input, u.Output, u.CacheRead, u.CacheWrite) < 0, "reply.usage: must not be negative")
	}
	add(!r.Pace.isValid(), "pace: must not be negative")
	f := r.Fault
	if f == nil {
		return found
	}
	add(f.Status == 0 && f.Break == "" && f.Pace == nil, "fault: needs status, break or pace")
	add(f.Status != 0 && f.Break != "", "fault: status and break are mutually exclusive")
	add(f.Times < 0 || f.After < 0 || f.RetryAfter < 0, "fault: times, after and retryAfter must not be negative")
	add(f.Status != 0 && (f.Status < 400 || f.Status > 599), "fault.status: %d is no status of an error; use 400 to 599", f.Status)
	add(f.RetryAfter != 0 && f.Status == 0, "fault.retryAfter: needs fault.status")
	add(f.After != 0 && f.Break == "", "fault.after: needs fault.break")
	add(f.Break != "" && !slices.Contains(breaks, f.Break), "fault.break: %q is unknown; use one of %v", f.Break, breaks)
	add(f.Break == BreakEndless && r.Reply.Text == "" && len(r.Reply.ToolCalls) == 0, "fault.break: endless needs reply.text or reply.toolCalls")
	add(f.Pace != nil && !f.Pace.isValid(), "fault.pace: must not be negative")
	return found
}

// isValid reports whether a pace has no negative field.
func (p Pace) isValid() bool { return p.Delay >= 0 && p.ChunkDelay >= 0 && p.ChunkSize >= 0 }
