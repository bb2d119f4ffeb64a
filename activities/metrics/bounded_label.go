package metrics

import "sync"

// maxWorkflows, maxModels and maxTools bound the workflows, models and tools with label values of their own. Later ones
// share one value, because each label value costs Prometheus memory.
const (
	maxWorkflows = 500
	maxModels    = 50
	maxTools     = 200
)

// otherLabel is the shared label value beyond the bound. No workflow, model or tool has this name.
const otherLabel = "(other)"

// boundedLabel is a label with a bounded number of values. It is safe for concurrent use.
type boundedLabel struct {
	most int

	mu     sync.Mutex
	values map[string]bool
}

func newBoundedLabel(most int) *boundedLabel {
	return &boundedLabel{most: most, values: map[string]bool{}}
}

// value returns the label value for a name: the name itself if it is among the first ones, else otherLabel.
func (l *boundedLabel) value(name string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.values[name] && len(l.values) >= l.most {
		return otherLabel
	}
	l.values[name] = true
	return name
}
