package metrics

// RunEnded notes how a generation of a run ended.
func (m *Metrics) RunEnded(state string) {
	if m == nil {
		return
	}
	m.runs.WithLabelValues(state).Inc()
}

// TasksEnded notes how so many tasks of a run that has ended, or instances of
// one, ended.
func (m *Metrics) TasksEnded(taskType, state string, n int) {
	if m == nil {
		return
	}
	m.tasks.WithLabelValues(taskType, state).Add(float64(n))
}
