package submission

import (
	"fmt"
	"strings"

	v1 "switchyard/proto/switchyard/v1"
)

// maxDetailBytes bounds the description of a run in Temporal.
const maxDetailBytes = 4 << 10

// runSummary returns the one-line summary of a run in Temporal's Web UI.
func runSummary(def *v1.Definition) string {
	if n := v1.CountTasks(def); n != 1 {
		return fmt.Sprintf("%s: %d tasks", def.GetName(), n)
	}
	return def.GetName() + ": 1 task"
}

// runDetails returns the description, in Markdown, of a run in Temporal's Web UI.
func runDetails(def *v1.Definition) string {
	var b strings.Builder
	if d := def.GetDescription(); d != "" {
		fmt.Fprintf(&b, "%s\n\n", d)
	}
	for _, name := range v1.TaskNames(def) {
		task := v1.TaskNamed(def, name)
		fmt.Fprintf(&b, "- `%s` (%s)", name, task.GetType())
		if len(task.GetDependsOn()) > 0 {
			fmt.Fprintf(&b, " after %s", strings.Join(task.GetDependsOn(), ", "))
		}
		b.WriteByte('\n')
		if b.Len() > maxDetailBytes {
			return strings.ToValidUTF8(b.String()[:maxDetailBytes], "") + "...\n"
		}
	}
	return b.String()
}
