package admission

// Pause stops all admissions until Resume.
func (q *Queue) Pause() { q.paused = true }

// Resume reverses Pause.
func (q *Queue) Resume() { q.paused = false }

// Paused reports whether admissions are paused.
func (q *Queue) Paused() bool { return q.paused }

// Hold keeps a task from being admitted until Release, whether it is waiting or added later. For a group it holds all
// instances. Units in flight are not affected.
func (q *Queue) Hold(task int) { q.hold(task, true) }

// Release reverses Hold. The task keeps the position of its age.
func (q *Queue) Release(task int) { q.hold(task, false) }

func (q *Queue) hold(task int, held bool) {
	if held {
		q.held[task] = true
	} else {
		delete(q.held, task)
	}
	if e := q.waiting[task]; e != nil {
		q.enter(e, !held)
	}
	if g := q.groups[task]; g != nil {
		for _, l := range g.lanes {
			q.put(l)
		}
	}
}
