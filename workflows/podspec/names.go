package podspec

import (
	"fmt"
	"maps"
	slashed "path"
	"reflect"
	"slices"
	"strings"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"switchyard/workflows/condition"
	"switchyard/workflows/nearest"
)

var metadataType = reflect.TypeFor[metav1.ObjectMeta]()

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// These are descriptions of valid names, for hints.
const (
	labelForm   = "at most 63 of a-z, 0-9 and '-', the first and last a letter or digit"
	domainForm  = "at most 253 of a-z, 0-9, '-' and '.', the first and last a letter or digit"
	keyForm     = `at most 63 letters, digits, '-', '_' and '.', the first and last a letter or digit, such as "team"; a domain and '/' may precede them, such as "example.com/team"`
	valueForm   = "at most 63 letters, digits, '-', '_' and '.', the first and last a letter or digit"
	maxMetadata = 256 << 10
)

// name reports a name that Kubernetes would refuse. It accepts a missing name, and one that is not known yet; other checks
// cover those.
func (m *merger) name(text string, at path, check func(string) []string, what, form string) bool {
	if text == "" || condition.HasTemplate(text) || len(check(text)) == 0 {
		return true
	}
	m.add(at, fmt.Sprintf("%s is %s, which is not a valid %s", at, quote(text), what), form)
	return false
}

// names checks the names in the spec and its template, except those of variables and volumes, which are checked while they are
// merged.
func (m *merger) names() {
	pod, inPod := m.template.Spec, path{"template", "spec"}
	m.name(m.spec.GetNamespace(), path{"namespace"}, validation.IsDNS1123Label, "namespace", labelForm)
	account := path{"serviceAccount"}
	if m.spec.GetServiceAccount() == "" {
		account = inPod.below("serviceAccountName")
	}
	m.name(pod.ServiceAccountName, account, validation.IsDNS1123Subdomain, "service account name", domainForm)
	m.name(m.spec.GetImage(), path{"image"}, isImage, "image name", imageForm)
	m.containers("containers", pod.Containers)
	m.containers("initContainers", pod.InitContainers)
	for i, secret := range pod.ImagePullSecrets {
		at := inPod.below("imagePullSecrets", i, "name")
		if own := i - len(pod.ImagePullSecrets) + len(m.spec.GetImagePullSecrets()); own >= 0 {
			at = path{"imagePullSecrets", own}
		}
		m.name(secret.Name, at, validation.IsDNS1123Subdomain, "secret name", domainForm)
	}
	for i, t := range m.spec.GetTolerations() {
		at := path{"tolerations", i}
		m.word(t.GetFields()["effect"].GetStringValue(), at.below("effect"), effects)
		m.word(t.GetFields()["operator"].GetStringValue(), at.below("operator"), operators)
	}
	for _, of := range []struct {
		what, valueOf string
		field, merged map[string]string
		at, there     path
	}{
		{"label", "label value", m.spec.GetLabels(), m.template.Labels, path{"labels"}, path{"template", "metadata", "labels"}},
		{"annotation", "", m.spec.GetAnnotations(), m.template.Annotations, path{"annotations"}, path{"template", "metadata", "annotations"}},
		{"node label", "label value", m.spec.GetNodeSelector(), pod.NodeSelector, path{"nodeSelector"}, inPod.below("nodeSelector")},
	} {
		for _, key := range sortedKeys(of.merged) {
			at := of.there.below(key)
			if _, own := of.field[key]; own {
				at = of.at.below(key)
			}
			m.key(key, at, of.what)
			if of.valueOf != "" {
				m.name(of.merged[key], at, validation.IsValidLabelValue, of.valueOf, valueForm)
			}
		}
	}
	size := 0
	for key, value := range m.template.Annotations { //workflowcheck:ignore (a sum)
		size += len(key) + len(value)
	}
	if size > maxMetadata {
		m.addKey(path{"annotations"}, fmt.Sprintf("the annotations take %d bytes; Kubernetes allows %d", size, maxMetadata), "keep large data in files or in the store")
	}
}

// key checks the key of a label or an annotation.
func (m *merger) key(key string, at path, what string) {
	switch {
	case what != "node label" && isReservedKey(key):
		m.addKey(at, fmt.Sprintf("%s %s is reserved for Switchyard", what, key), "choose another name; names with "+KeyPrefix+" and "+ManagedBy+" are reserved")
	case len(validation.IsQualifiedName(strings.ToLower(key))) > 0:
		m.addKey(at, fmt.Sprintf("%s %s is not allowed in Kubernetes", what, quote(key)), keyForm)
	}
}

// containers checks the names and images of the template's containers.
func (m *merger) containers(field string, containers []corev1.Container) {
	for i, c := range containers {
		at := path{"template", "spec", field, i}
		m.name(c.Name, at.below("name"), validation.IsDNS1123Label, "container name", labelForm)
		if field != "containers" || i != m.main || m.spec.GetImage() == "" {
			m.name(c.Image, at.below("image"), isImage, "image name", imageForm)
		}
	}
}

func (m *merger) envName(name string, at path) {
	if isReservedVariable(name) {
		m.add(at, fmt.Sprintf("%s is %s; Switchyard sets the variables that begin with %s", at, quote(name), VariablePrefix),
			"choose another name; only "+strings.Join(settable, " and ")+" may be set")
		return
	}
	m.name(name, at, validation.IsRelaxedEnvVarName, "variable name", "printable ASCII characters except '='")
}

func (m *merger) volumeName(name string, at path) {
	if strings.HasPrefix(name, NamePrefix) {
		m.add(at, fmt.Sprintf("%s is %s; names of volumes that begin with %s are reserved for Switchyard", at, quote(name), NamePrefix), "choose another name")
		return
	}
	m.name(name, at, validation.IsDNS1123Label, "volume name", labelForm)
}

func (m *merger) mountPath(text string, at path) {
	switch clean := slashed.Clean(text); {
	case text == "" || condition.HasTemplate(text):
	case clean == Directory || strings.HasPrefix(clean, Directory+"/"):
		m.add(at, fmt.Sprintf("%s is %s; Switchyard keeps its files in %s", at, quote(text), Directory), "choose another path")
	case strings.Contains(text, ":"):
		m.add(at, fmt.Sprintf("%s is %s; a path must not contain ':'", at, quote(text)), "")
	case !slashed.IsAbs(text):
		m.add(at, fmt.Sprintf("%s is %s, which is not an absolute path", at, quote(text)), "it is the path of the volume in the container")
	}
}

// mountedVolume checks that the volume of a mount exists. volumes holds the paths of all volumes.
func (m *merger) mountedVolume(name string, at path, volumes map[string]path) {
	switch {
	case name == "" && !m.open:
		m.addKey(at, at.String()+" is missing", "it is the name of a volume")
	case name == "" || condition.HasTemplate(name) || m.open || volumes[name] != nil:
	case strings.HasPrefix(name, NamePrefix):
		m.add(at, fmt.Sprintf("%s is %s, which is reserved for Switchyard", at, quote(name)), "mount another volume")
	default:
		hint := "add it to spec.volumes"
		if near := nearest.Word(name, sortedKeys(volumes)); near != "" {
			hint = "did you mean " + near + "?"
		}
		m.add(at, fmt.Sprintf("%s is %s, but there is no such volume", at, quote(name)), hint)
	}
}

var (
	effects   = []string{string(corev1.TaintEffectNoSchedule), string(corev1.TaintEffectPreferNoSchedule), string(corev1.TaintEffectNoExecute)}
	operators = []string{string(corev1.TolerationOpEqual), string(corev1.TolerationOpExists)}
)

// word checks that a text is one of the given words.
func (m *merger) word(text string, at path, words []string) {
	if text == "" || condition.HasTemplate(text) || slices.Contains(words, text) {
		return
	}
	last := len(words) - 1
	m.add(at, fmt.Sprintf("%s is %s; it must be %s or %s", at, quote(text), strings.Join(words[:last], ", "), words[last]), nearest.DidYouMean(text, words))
}

const imageForm = `such as "ubuntu:22.04"; names are lower case`

// isImage returns the problems of an image name, in the form of package validation's functions.
func isImage(text string) []string {
	if _, err := reference.ParseAnyReference(text); err != nil {
		return []string{err.Error()}
	}
	return nil
}
