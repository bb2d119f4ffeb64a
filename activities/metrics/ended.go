package metrics

// RunEnded counts a generation of a run that ended, by its workflow and state.
func (m *Metrics) RunEnded(workflow, state string) {
	if m == nil {
		return
	}
	m.runs.WithLabelValues(m.workflows.value(workflow), state).Inc()
}

// TasksEnded counts n tasks or instances of an ended run, by their state.
func (m *Metrics) TasksEnded(taskType, state string, n int) {
	if m == nil {
		return
	}
	m.tasks.WithLabelValues(taskType, state).Add(float64(n))
}
