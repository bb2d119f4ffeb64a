package runview

import "switchyard/workflows/names"

// maxOpenParts bounds how many child workflows of a run OpenParts returns.
const maxOpenParts = 64

// OpenParts returns the ids of the open child workflows of a run that may carry a task or instance: one for an instance, all
// children of the task for a task, or all if name is empty. It returns at most 64.
func OpenParts(run *Description, name string) (ids []string) {
	id := run.GetWorkflowExecutionInfo().GetExecution().GetWorkflowId()
	task, index, isInstance := names.ParseInstanceName(name)
	if !isInstance {
		task = name
	}
	from := -1
	for _, child := range run.GetPendingChildren() {
		part, ok := names.ParseFanOutID(child.GetWorkflowId())
		switch {
		case !ok || part.Run != id || name != "" && part.Task != task || len(ids) == maxOpenParts:
		case !isInstance:
			ids = append(ids, child.GetWorkflowId())
		case from < part.From && part.From <= index:
			ids, from = []string{child.GetWorkflowId()}, part.From
		}
	}
	return ids
}
