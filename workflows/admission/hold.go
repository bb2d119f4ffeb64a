package admission

// Pause lets nothing continue until Resume.
func (q *Queue) Pause() { q.paused = true }

// Resume takes a Pause back.
func (q *Queue) Resume() { q.paused = false }

// Paused reports whether nothing continues.
func (q *Queue) Paused() bool { return q.paused }

// Hold keeps a task back until Release, whether it waits or is added later; of a
// group, all of its instances. What is under way is left alone.
func (q *Queue) Hold(task int) { q.hold(task, true) }

// Release takes a Hold back. The task has the place that its age gives it.
func (q *Queue) Release(task int) { q.hold(task, false) }

// Held reports whether Hold was said of the task itself.
func (q *Queue) Held(task int) bool { return q.held[task] }

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
