package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"switchyard/workflows/interpreter"
)

const (
	// inputKey is the key of the input in a Secret, and the name of its file.
	inputKey = "input.json"
	// maxSecret bounds the data of a Secret: 1 MiB, less a margin for keys and what Kubernetes adds.
	maxSecret = 1<<20 - 16<<10
)

// secret returns the Secret with the input, the command if the program reads it from a file, and the values of secret variables.
func (b *builder) secret(meta metav1.ObjectMeta) (*corev1.Secret, error) {
	data := map[string][]byte{inputKey: b.o.Input}
	size := len(b.o.Input) + len(b.script)
	if b.script != "" {
		data[interpreter.File] = []byte(b.script)
	}
	for name, key := range b.secretKeys() {
		data[key] = []byte(b.a.Env[name])
		size += len(data[key])
	}
	if size > maxSecret {
		return nil, badSpec(fmt.Errorf("input, script and secrets of the task have %d bytes (input: %d); a Kubernetes Secret holds %d (let upstream tasks write large data to the store or a volume and pass its location)",
			size, len(b.o.Input), maxSecret))
	}
	return &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Secret"}, ObjectMeta: meta,
		Immutable: new(true), Type: corev1.SecretTypeOpaque, Data: data,
	}, nil
}

// secretKeys maps the names of secret variables to their keys in the Secret.
func (b *builder) secretKeys() map[string]string {
	keys := map[string]string{}
	for i, name := range slices.Sorted(maps.Keys(b.a.Secrets.Env)) {
		if _, ok := b.a.Env[name]; !ok {
			continue
		}
		key := "env." + name
		if len(validation.IsConfigMapKey(key)) > 0 {
			key = "env-" + strconv.Itoa(i)
		}
		keys[name] = key
	}
	return keys
}
