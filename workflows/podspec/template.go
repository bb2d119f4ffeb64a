package podspec

import (
	"fmt"

	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"

	v1 "switchyard/proto/switchyard/v1"
)

// MainContainer is the name of the container that runs the program of a task if the template has several.
const MainContainer = "main"

// Template returns the pod template of a spec: its field `template` with the other fields merged into it, without what
// Switchyard sets itself. If there are problems, the template is incomplete.
//
// A value with `${{ }}` is kept where a text is expected, and left out elsewhere. Neither is a problem.
func Template(spec *v1.K8SJobSpec) (*corev1.PodTemplateSpec, []Problem) {
	m := &merger{spec: spec, template: &corev1.PodTemplateSpec{}}
	at := path{"template"}
	if spec.GetTemplate() != nil {
		*m.template = decode[corev1.PodTemplateSpec](&m.report, structpb.NewStructValue(spec.GetTemplate()), at)
	}
	m.reserved()
	m.main = m.findMain()
	if m.main >= 0 {
		m.program()
		m.env()
		m.volumes()
		m.scheduling()
		m.metadata()
		m.names()
	}
	return m.template, m.problems
}

// Main returns the container of a template that runs the program of the task, or nil if there is none.
func Main(template *corev1.PodTemplateSpec) *corev1.Container {
	if i := mainIndex(template.Spec.Containers); i >= 0 {
		return &template.Spec.Containers[i]
	}
	return nil
}

func mainIndex(containers []corev1.Container) int {
	for i := range containers {
		if containers[i].Name == MainContainer {
			return i
		}
	}
	if len(containers) == 1 {
		return 0
	}
	return -1
}

// merger merges the fields of a spec into its template.
type merger struct {
	report
	spec     *v1.K8SJobSpec
	template *corev1.PodTemplateSpec
	main     int // index of the program's container
}

// findMain returns the index of the program's container, which it adds if the template has no containers. It returns -1 if the
// container is ambiguous.
func (m *merger) findMain() int {
	pod := &m.template.Spec
	switch i := mainIndex(pod.Containers); {
	case len(pod.Containers) == 0:
		pod.Containers = []corev1.Container{{Name: MainContainer}}
		return 0
	case i >= 0:
		if pod.Containers[i].Name == "" {
			pod.Containers[i].Name = MainContainer
		}
		return i
	}
	at := path{"template", "spec", "containers"}
	if !m.open {
		m.addKey(at, fmt.Sprintf("%s has %d containers, but none is named %q", at, len(pod.Containers), MainContainer),
			`name the one that runs the task "main"; the others may be initContainers with restartPolicy Always, which end with it`)
	}
	return -1
}

func (m *merger) container() *corev1.Container { return &m.template.Spec.Containers[m.main] }

// atMain returns a path inside the program's container.
func (m *merger) atMain(steps ...any) path {
	return path{"template", "spec", "containers", m.main}.below(steps...)
}
