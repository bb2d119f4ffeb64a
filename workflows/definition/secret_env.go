package definition

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	"switchyard/workflows/condition"
	"switchyard/workflows/definition/source"
	"switchyard/workflows/secretref"
)

// secretEnvField is the field for variables whose values are references to secrets, in tasks and in defaults.
const secretEnvField = protoreflect.Name("secret_env")

// secretEnvEntry is the message of its entries.
const secretEnvEntry = protoreflect.Name("SecretEnvEntry")

// secretEnv checks the secret variables of a task or of the defaults. env holds the plain variables beside them. A value that
// is not a reference may be the secret itself, so neither the message nor the snippet of the problem shows it.
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
