package podspec

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"

	"switchyard/workflows/interpreter"
)

// conflict reports a field of the spec that sets what the template also sets.
func (m *merger) conflict(field, inTemplate path, what string) {
	m.addKey(field, fmt.Sprintf("%s and %s both set %s", field, inTemplate, what), "leave one of them out")
}

// program merges the image, the command and the arguments of the container.
func (m *merger) program() {
	c := m.container()
	if image := m.spec.GetImage(); image != "" {
		if c.Image != "" {
			m.conflict(path{"image"}, m.atMain("image"), "the image of the program")
		}
		c.Image = image
	}
	if c.Image == "" && !m.open {
		m.addKey(path{"image"}, "spec.image is missing", `write image: "ubuntu:22.04", or name one in spec.template`)
	}
	if command := m.command(); command != nil {
		if len(c.Command) > 0 {
			m.conflict(path{"command"}, m.atMain("command"), "the command of the program")
		}
		c.Command = command
	}
	if args := m.spec.GetArgs(); len(args) > 0 {
		if len(c.Args) > 0 {
			m.conflict(path{"args"}, m.atMain("args"), "the arguments of the program")
		}
		c.Args = slices.Clone(args)
	}
	if p, isText := m.textProgram(); isText {
		argv := p.Argv(ScriptFile, c.Args)
		c.Command = argv[:len(argv)-len(c.Args)]
		for i, word := range c.Command {
			c.Command[i] = strings.ReplaceAll(word, "$", "$$") // Kubernetes replaces $(NAME), and $$ with $
		}
	}
}

// textProgram returns the program that runs the command, if that is a text.
func (m *merger) textProgram() (p interpreter.Program, isText bool) {
	text := m.spec.GetCommand().GetStringValue()
	if text == "" {
		return p, false
	}
	p, err := interpreter.New(text, m.spec.GetShell())
	if fault, ok := errors.AsType[*interpreter.ShellError](err); ok {
		m.add(path{"shell"}, "spec.shell "+fault.Fault, fault.Hint)
		return p, false
	}
	return p, true
}

// command returns the command of the spec, or nil if it has none.
func (m *merger) command() (command []string) {
	at := path{"command"}
	switch v := m.spec.GetCommand().GetKind().(type) {
	case nil, *structpb.Value_NullValue:
		return nil
	case *structpb.Value_StringValue:
		if v.StringValue == "" {
			m.add(at, "spec.command is empty", "leave it out to run the image's own program")
			return nil
		}
		return []string{v.StringValue} // program replaces it
	case *structpb.Value_ListValue:
		for i, item := range v.ListValue.GetValues() {
			text, ok := item.GetKind().(*structpb.Value_StringValue)
			if !ok {
				m.wrong(item, at.below(i), "a string", "")
				continue
			}
			command = append(command, text.StringValue)
		}
		if len(v.ListValue.GetValues()) == 0 {
			m.add(at, "spec.command is empty", "leave it out to run the image's own program")
		}
		return command
	}
	m.wrong(m.spec.GetCommand(), at, "a string for a shell, or a list of strings", "")
	return nil
}

// env merges the variables of the container.
func (m *merger) env() {
	c := m.container()
	at := func(i int) path { return m.atMain("env", i) }
	seen := map[string]path{}
	for i, v := range c.Env {
		m.variable(v, at(i), seen)
	}
	for i, item := range m.spec.GetEnv() {
		v := decode[corev1.EnvVar](&m.report, structpb.NewStructValue(item), path{"env", i})
		m.variable(v, path{"env", i}, seen)
		c.Env = append(c.Env, v)
	}
}

// variable checks one variable. seen holds the paths of the earlier ones.
func (m *merger) variable(v corev1.EnvVar, at path, seen map[string]path) {
	m.unique(v.Name, at.below("name"), "the variable", seen)
	m.envName(v.Name, at.below("name"))
	if v.Value != "" && v.ValueFrom != nil {
		m.addKey(at.below("value"), fmt.Sprintf("%s and %s are mutually exclusive", at.below("value"), at.below("valueFrom")), "leave one of them out")
	}
}

// unique reports a missing or duplicate name.
func (m *merger) unique(name string, at path, what string, seen map[string]path) {
	if name == "" {
		if !m.open {
			m.addKey(at, at.String()+" is missing", "")
		}
		return
	}
	if before, twice := seen[name]; twice {
		m.add(at, fmt.Sprintf("%s and %s both set %s %s", at, before, what, quote(name)), "leave one of them out")
		return
	}
	seen[name] = at
}

// volumes merges the volumes of the pod and the volume mounts of the container.
func (m *merger) volumes() {
	pod, c := &m.template.Spec, m.container()
	names, paths := map[string]path{}, map[string]path{}
	volume := func(v corev1.Volume, at path) {
		m.unique(v.Name, at.below("name"), "the volume", names)
		m.volumeName(v.Name, at.below("name"))
	}
	mount := func(v corev1.VolumeMount, at path) {
		m.unique(v.MountPath, at.below("mountPath"), "the path", paths)
		m.mountPath(v.MountPath, at.below("mountPath"))
	}
	for i, v := range pod.Volumes {
		volume(v, path{"template", "spec", "volumes", i})
	}
	for i, item := range m.spec.GetVolumes() {
		v := decode[corev1.Volume](&m.report, structpb.NewStructValue(item), path{"volumes", i})
		volume(v, path{"volumes", i})
		pod.Volumes = append(pod.Volumes, v)
	}
	at := make([]path, 0, len(c.VolumeMounts)+len(m.spec.GetVolumeMounts()))
	for i, v := range c.VolumeMounts {
		at = append(at, m.atMain("volumeMounts", i))
		mount(v, at[i])
	}
	for i, item := range m.spec.GetVolumeMounts() {
		v := decode[corev1.VolumeMount](&m.report, structpb.NewStructValue(item), path{"volumeMounts", i})
		at = append(at, path{"volumeMounts", i})
		mount(v, path{"volumeMounts", i})
		c.VolumeMounts = append(c.VolumeMounts, v)
	}
	for i, v := range c.VolumeMounts {
		m.mountedVolume(v.Name, at[i].below("name"), names)
	}
}

// scheduling merges the fields that affect where and as whom the cluster runs the pod.
func (m *merger) scheduling() {
	pod := &m.template.Spec
	if account := m.spec.GetServiceAccount(); account != "" {
		for _, set := range []struct{ field, value string }{{"serviceAccountName", pod.ServiceAccountName}, {"serviceAccount", pod.DeprecatedServiceAccount}} {
			if set.value != "" {
				m.conflict(path{"serviceAccount"}, path{"template", "spec", set.field}, "the service account of the pod")
			}
		}
		pod.ServiceAccountName = account
	}
	pod.NodeSelector = m.mergeMap(m.spec.GetNodeSelector(), pod.NodeSelector, path{"nodeSelector"}, path{"template", "spec", "nodeSelector"}, "the label that a node must have")
	for i, item := range m.spec.GetTolerations() {
		pod.Tolerations = append(pod.Tolerations, decode[corev1.Toleration](&m.report, structpb.NewStructValue(item), path{"tolerations", i}))
	}
	secrets := map[string]path{}
	for i, secret := range pod.ImagePullSecrets {
		m.unique(secret.Name, path{"template", "spec", "imagePullSecrets", i, "name"}, "the secret", secrets)
	}
	for i, name := range m.spec.GetImagePullSecrets() {
		m.unique(name, path{"imagePullSecrets", i}, "the secret", secrets)
		pod.ImagePullSecrets = append(pod.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
}

// metadata merges labels and annotations.
func (m *merger) metadata() {
	meta, at := &m.template.ObjectMeta, path{"template", "metadata"}
	meta.Labels = m.mergeMap(m.spec.GetLabels(), meta.Labels, path{"labels"}, at.below("labels"), "the label")
	meta.Annotations = m.mergeMap(m.spec.GetAnnotations(), meta.Annotations, path{"annotations"}, at.below("annotations"), "the annotation")
}

// mergeMap returns the entries of a field of the spec and of its counterpart in the template.
func (m *merger) mergeMap(field, inTemplate map[string]string, at, there path, what string) map[string]string {
	merged := maps.Clone(inTemplate)
	for _, key := range slices.Sorted(maps.Keys(field)) {
		if _, twice := inTemplate[key]; twice {
			m.conflict(at.below(key), there.below(key), what+" "+quote(key))
		}
		if merged == nil {
			merged = map[string]string{}
		}
		merged[key] = field[key]
	}
	return merged
}
