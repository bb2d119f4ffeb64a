package definition

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	"switchyard/workflows/condition"
	"switchyard/workflows/definition/source"
	"switchyard/workflows/secretref"
)

// secretEnvField has variables whose values are references to secrets, in tasks and in defaults.
const secretEnvField = protoreflect.Name("secret_env")

// secretEnvEntry is the message of its entries.
const secretEnvEntry = protoreflect.Name("SecretEnvEntry")

// secretEnv checks the secret variables of a task, or of the defaults, which have the variables env besides. What is no
// reference may be the secret itself: neither the words nor the line of such a problem show it.
func (d *decoder) secretEnv(secrets, env map[string]string, p *source.Path) {
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		at := p.Key(name)
		d.settable(name, at)
		if _, twice := env[name]; twice && !d.IsSettled(at) {
			d.Add(d.locateKey(at), at, "environment variable "+source.Quote(name)+" is in env and in secretEnv", "keep one of them")
		}
		if _, fault := secretref.Parse(secrets[name]); fault != nil && !d.IsSettled(at) && !condition.HasTemplate(secrets[name]) {
			d.AddHidden(d.locate(at), at, at.Local()+" "+fault.Reason, fault.Hint)
		}
	}
}
