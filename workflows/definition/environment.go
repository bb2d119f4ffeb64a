package definition

import (
	"maps"
	slashed "path"
	"slices"

	v1 "switchyard/proto/switchyard/v1"
)

// Environments returns the sorted names of the environments that the tasks of a definition use. Names from templates are not
// known yet and are left out. The definition must be in canonical form.
func Environments(def *v1.Definition) []string {
	found := map[string]bool{}
	for _, task := range def.GetTasks() {
		if task.GetType() != v1.TypeContainer && task.GetType() != v1.TypeVPS {
			continue
		}
		fields := task.GetSpec().GetFields()
		for _, field := range []string{"environment", "vmImage"} {
			if name := fields[field].GetStringValue(); v1.IsEnvironmentName(name) {
				found[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// isVMImage reports whether a text can name the image of a virtual machine.
func isVMImage(text string) bool {
	return v1.IsEnvironmentName(text) || slashed.IsAbs(text) || bucketObject().MatchString(text)
}
