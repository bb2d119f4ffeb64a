package metrics

// RunEnded notes how a generation of a run of a workflow ended.
func (m *Metrics) RunEnded(workflow, state string) {
	if m == nil {
		return
	}
	m.runs.WithLabelValues(m.workflows.value(workflow), state).Inc()
}

// TasksEnded notes how so many tasks of a run that has ended, or instances of
// one, ended.
func (m *Metrics) TasksEnded(taskType, state string, n int) {
	if m == nil {
		return
	}
	m.tasks.WithLabelValues(taskType, state).Add(float64(n))
}
