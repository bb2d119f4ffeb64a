package metrics

// maxWorkflows bounds the workflows that have figures of their own; later ones share
// one, since each label value costs Prometheus memory.
const maxWorkflows = 500

// otherWorkflows is the label of the workflows beyond that. No workflow has this name.
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
