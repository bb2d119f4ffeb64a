package dag_test

import "slices"

// putBack requeues dead letters, everything that did not complete, or some tasks with all tasks below them.
func (r *reference) putBack(dead []string, failed bool, from []string) {
	if failed || len(from) > 0 {
		r.cancelled, r.aborted = false, ""
	}
	wasHalted := r.halted()
	fresh := func(name string, retried bool) {
		t := r.tasks[name]
		*t = refTask{state: "pending", claim: t.claim, exit: -1, retried: retried}
	}
	keeping := func(name string, retried bool) {
		t := r.tasks[name]
		instances := t.instances
		fresh(name, retried)
		t.instances, t.fanned = instances, len(instances) > 0
	}
	var roots, resumed, insisted []string
	for _, name := range r.order {
		below := slices.ContainsFunc(from, func(f string) bool { return f == name || slices.Contains(ancestors(r.def, name), f) })
		switch t := r.tasks[name]; {
		case below:
			for _, one := range t.instances {
				t.claim = max(t.claim, r.tasks[one].claim)
				delete(r.tasks, one)
			}
			fresh(name, false)
			roots, insisted = append(roots, name), append(insisted, name)
		case failed && !r.ok(name):
			keeping(name, false)
			for _, one := range t.instances {
				if !r.ok(one) {
					fresh(one, false)
				}
			}
			roots = append(roots, name)
		}
	}
	for _, name := range dead {
		if t := r.tasks[name]; t == nil || t.state != "dead_letter" {
			continue // it is rerun anyway
		}
		fresh(name, true)
		task := taskOf(name)
		reopened := task != name && r.terminal(task)
		if reopened {
			keeping(task, true)
		}
		if (reopened || task == name) && !slices.Contains(roots, task) {
			roots, resumed = append(roots, task), append(resumed, task)
		}
	}
	if r.firstFailure == "" || !r.failsRun(r.firstFailure) {
		r.firstFailure = ""
		for _, other := range slices.Backward(r.order) {
			if r.failsRun(other) {
				r.firstFailure = other
			}
		}
	}
	if r.halted() {
		for _, name := range insisted {
			r.tasks[name].retried = true
		}
	}
	lifted := wasHalted && !r.halted()
	for _, name := range r.order {
		if t := r.tasks[name]; lifted && t.state == "skipped" && t.reason == "halt" {
			roots = append(roots, name)
		}
	}
	for _, name := range r.order {
		t := r.tasks[name]
		below := slices.ContainsFunc(ancestors(r.def, name), func(a string) bool { return slices.Contains(roots, a) })
		switch {
		case t.state == "skipped" && (below || slices.Contains(roots, name)):
			if !r.runAllows(name) {
				t.reason = "halt"
				continue
			}
			keeping(name, false)
			for _, one := range t.instances {
				if r.tasks[one].state == "skipped" {
					fresh(one, false)
				}
			}
		case !r.terminal(name):
			for _, one := range t.instances {
				switch o := r.tasks[one]; {
				case o.state != "skipped":
				case o.reason == "max_failures" && !r.exceeded(name) && !r.runAllows(one):
					o.reason = "halt"
				case o.reason == "max_failures" && !r.exceeded(name), o.reason == "halt" && lifted:
					fresh(one, false)
				}
			}
		}
	}
	for _, name := range r.order {
		if !r.settled(name) {
			r.tasks[name].asked = ""
		}
	}
	for _, name := range resumed {
		if r.settled(name) {
			r.begin(name)
		}
	}
	r.fixpoint()
}
