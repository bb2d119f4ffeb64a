package definition

import (
	"maps"
	slashed "path"
	"slices"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
)

// imageHint is the hint for the source of a container's image.
const imageHint = "write image: NAME, or environment: NAME of one that `switchyard env list` shows"

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

// environment checks the name of an environment.
func (d *decoder) environment(name string, p *source.Path) {
	d.word(name, p.Field("environment"), v1.IsEnvironmentName, "no name of an environment", "it is at most 63 of [a-z0-9._-], the first and the last a letter or digit")
}

// imageOrEnvironment checks that a spec has exactly one of a field and environment.
func (d *decoder) imageOrEnvironment(p *source.Path, field, value, environment, hint string) {
	at, other := p.Field(field), p.Field("environment")
	switch {
	case d.IsSettled(at) || d.IsSettled(other):
	case value == "" && environment == "":
		d.Add(d.locate(at), at, "spec."+field+" is missing", hint)
	case value != "" && environment != "":
		d.Add(d.locateKey(at), at, "spec."+field+" and environment exclude each other: an environment takes the place of an image", "leave one of them out")
	}
}

// excluded reports the fields that are set but do not apply. of describes what they are for.
func (d *decoder) excluded(p *source.Path, of string, isSet map[string]bool) {
	for _, field := range slices.Sorted(maps.Keys(isSet)) {
		if at := p.Field(field); isSet[field] && !d.IsSettled(at) {
			d.Add(d.locateKey(at), at, "spec."+field+" is for "+of, "leave it out")
		}
	}
}

// isVMImage reports whether a text can name the image of a virtual machine.
func isVMImage(text string) bool {
	return v1.IsEnvironmentName(text) || slashed.IsAbs(text) || bucketObject().MatchString(text)
}
