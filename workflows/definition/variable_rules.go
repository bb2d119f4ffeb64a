package definition

import (
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/condition"
	"switchyard/workflows/definition/source"
	"switchyard/workflows/secretref"
)

// variableRules checks the environment variables of a task or of the defaults.
type variableRules struct{ *decoder }

// ownVariables is the prefix of the environment variables that Switchyard sets for a task.
const ownVariables = "SWITCHYARD_"

// settableVariables are the settings of the command switchyard that a task may set in its environment.
var settableVariables = []string{"SWITCHYARD_GATEWAY", "SWITCHYARD_TOKEN"}

// hasVariable reports whether a task sets a variable, secret or not.
func hasVariable(task *v1.TaskDefinition, name string) bool {
	_, plain := task.GetEnv()[name]
	_, secret := task.GetSecretEnv()[name]
	return plain || secret
}

// plain checks environment variables.
func (r variableRules) plain(env map[string]string, p *source.Path) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		at := p.Key(name)
		r.settable(name, at)
		if strings.ContainsRune(env[name], 0) {
			r.nul(r.locate(at), at)
		}
	}
}

// secretEnvField is the field for variables whose values are references to secrets, in tasks and in defaults.
const secretEnvField = protoreflect.Name("secret_env")

// secretEnvEntry is the message of its entries.
const secretEnvEntry = protoreflect.Name("SecretEnvEntry")

// secret checks the secret variables of a task or of the defaults. env holds the plain variables beside them. A value that
// is not a reference may be the secret itself, so neither the message nor the snippet of the problem shows it.
func (r variableRules) secret(secrets, env map[string]string, p *source.Path) {
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		at := p.Key(name)
		r.settable(name, at)
		if _, twice := env[name]; twice {
			r.Add(r.locateKey(at), at, "environment variable "+source.Quote(name)+" is in env and in secretEnv", "keep one of them")
		}
		if _, fault := secretref.Parse(secrets[name]); fault != nil && !condition.HasTemplate(secrets[name]) {
			r.AddHidden(r.locate(at), at, at.Local()+" "+fault.Reason, fault.Hint)
		}
	}
}

// settable reports a variable that Switchyard sets itself.
func (r variableRules) settable(name string, at *source.Path) {
	if strings.HasPrefix(name, ownVariables) && !slices.Contains(settableVariables, name) {
		r.Add(r.locateKey(at), at, "environment variable "+source.Quote(name)+" cannot be set: Switchyard sets all that begin with "+ownVariables,
			"choose another name; only "+strings.Join(settableVariables, " and ")+" may be set")
	}
}
