package metrics

// maxWorkflows is how many workflows the figures of runs are told by; those that come
// later count as one, since each costs room on whoever keeps the figures.
const maxWorkflows = 500

// otherWorkflows is what they count as. No workflow has the name.
const otherWorkflows = "(other)"

// RunEnded notes how a generation of a run of a workflow ended.
func (m *Metrics) RunEnded(workflow, state string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	if !m.workflows[workflow] && len(m.workflows) >= maxWorkflows {
		workflow = otherWorkflows
	} else {
		m.workflows[workflow] = true
	}
	m.mu.Unlock()
	m.runs.WithLabelValues(workflow, state).Inc()
}

// TasksEnded notes how so many tasks of a run that has ended, or instances of
// one, ended.
func (m *Metrics) TasksEnded(taskType, state string, n int) {
	if m == nil {
		return
	}
	m.tasks.WithLabelValues(taskType, state).Add(float64(n))
}
