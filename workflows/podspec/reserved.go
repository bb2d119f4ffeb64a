package podspec

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"switchyard/workflows/interpreter"
)

// These are the names and prefixes that Switchyard reserves.
const (
	// KeyPrefix is the prefix of the keys of Switchyard's labels and annotations.
	KeyPrefix = "switchyard.dev/"
	// NamePrefix is the prefix of the names of Switchyard's volumes and containers.
	NamePrefix = "switchyard-"
	// VariablePrefix is the prefix of the variables that Switchyard sets.
	VariablePrefix = "SWITCHYARD_"
	// Directory holds Switchyard's files in the container of the program.
	Directory = "/switchyard"
	// InputDirectory holds the files that the program is given. ScriptFile is the file among them with the command, for an
	// interpreter that reads it from a file.
	InputDirectory = Directory + "/in"
	ScriptFile     = InputDirectory + "/" + interpreter.File
	// ManagedBy is the label for the program that manages an object.
	ManagedBy = "app.kubernetes.io/managed-by"
)

// settable are the variables SWITCHYARD_* that a task may set.
var settable = []string{"SWITCHYARD_GATEWAY", "SWITCHYARD_TOKEN"}

// reserved reports fields of the template that Switchyard sets itself or that would have no effect.
func (m *merger) reserved() {
	m.reservedMetadata()
	pod, at := m.template.Spec, path{"template", "spec"}
	if policy := pod.RestartPolicy; policy != "" && policy != corev1.RestartPolicyNever {
		m.add(at.below("restartPolicy"), at.below("restartPolicy").String()+" is "+quote(string(policy))+"; it must be Never, because an attempt runs once",
			"leave it out; use retry of the task")
	}
	for _, f := range []struct {
		name, hint string
		isSet      bool
	}{
		{"activeDeadlineSeconds", "leave it out; timeout of the task limits its attempts", pod.ActiveDeadlineSeconds != nil},
		{"terminationGracePeriodSeconds", "leave it out; a stopped attempt has the same grace period as on a node", pod.TerminationGracePeriodSeconds != nil},
	} {
		if f.isSet {
			m.addKey(at.below(f.name), at.below(f.name).String()+" is set by Switchyard", f.hint)
		}
	}
	if len(pod.EphemeralContainers) > 0 {
		m.addKey(at.below("ephemeralContainers"), at.below("ephemeralContainers").String()+" is for running pods only", "use containers or initContainers")
	}
	m.reservedContainers("containers", pod.Containers)
	m.reservedContainers("initContainers", pod.InitContainers)
	if i := mainIndex(pod.Containers); i >= 0 {
		m.reservedMain(pod.Containers[i], at.below("containers", i))
	}
}

func (m *merger) reservedContainers(field string, containers []corev1.Container) {
	for i, c := range containers {
		at := path{"template", "spec", field, i, "name"}
		if strings.HasPrefix(c.Name, NamePrefix) {
			m.add(at, at.String()+" is "+quote(c.Name)+"; names of containers that begin with "+NamePrefix+" are reserved for Switchyard", "choose another name")
		}
	}
}

// reservedMain reports reserved fields of the program's container.
func (m *merger) reservedMain(c corev1.Container, at path) {
	for _, f := range []struct {
		name, hint string
		isSet      bool
	}{
		{"terminationMessagePath", "leave it out; the output of the task is what the program writes to $SWITCHYARD_OUTPUT", c.TerminationMessagePath != ""},
		{"terminationMessagePolicy", "leave it out; the output of the task is what the program writes to $SWITCHYARD_OUTPUT", c.TerminationMessagePolicy != ""},
		{"restartPolicy", "leave it out; use retry of the task", c.RestartPolicy != nil},
		{"restartPolicyRules", "leave it out; use retry of the task", len(c.RestartPolicyRules) > 0},
	} {
		if f.isSet {
			m.addKey(at.below(f.name), at.below(f.name).String()+" is set by Switchyard", f.hint)
		}
	}
}

// reservedMetadata reports fields of the template's metadata that have no effect on the pod of a Job, or a harmful one.
func (m *merger) reservedMetadata() {
	fields := m.spec.GetTemplate().GetFields()["metadata"].GetStructValue().GetFields()
	known := jsonFields(metadataType)
	for _, name := range sortedKeys(fields) {
		if name == "labels" || name == "annotations" || known[name] == nil { // an unknown field is reported elsewhere
			continue
		}
		at, hint := path{"template", "metadata", name}, "leave it out; a template has labels and annotations"
		if name == "namespace" {
			hint = "write it in spec.namespace"
		}
		m.addKey(at, at.String()+" does not apply to the pod of a Job", hint)
	}
}

// isReservedKey reports whether a label or an annotation is Switchyard's own.
func isReservedKey(key string) bool { return strings.HasPrefix(key, KeyPrefix) || key == ManagedBy }

func isReservedVariable(name string) bool {
	return strings.HasPrefix(name, VariablePrefix) && !slices.Contains(settable, name)
}
