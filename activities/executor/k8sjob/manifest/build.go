package manifest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"switchyard/activities/executor"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/interpreter"
	"switchyard/workflows/podspec"
)

// Options hold what Build needs besides the attempt.
type Options struct {
	// Namespace is the namespace for a spec that names none.
	Namespace string
	// Holder is the node with its incarnation, in the form that FormatClaim takes.
	Holder string
	// Input is the content of the file that SWITCHYARD_INPUT names on the node.
	Input []byte
	// HelperImage is an image of Switchyard with the helper that transfers the program's files to the node. If it is
	// empty, only the output is transferred, in the termination message of the container, which is limited to 4 KiB.
	HelperImage string
	// Frame is the nonce of the helper's frames.
	Frame string
}

const (
	// codeCannotRun is the exit code for a command that cannot be started, as in a shell.
	codeCannotRun = 126
	// deadlineMargin is how long after its timeout the cluster ends an attempt that no node watches.
	deadlineMargin = 10 * time.Minute
)

// Build returns the Job of an attempt and the Secret with its input. template is the result of podspec.Template for the
// spec. An error is a *executor.StartError with BadSpec.
func Build(a executor.Attempt, template *corev1.PodTemplateSpec, spec *v1.K8SJobSpec, o Options) (*batchv1.Job, *corev1.Secret, error) {
	b := &builder{a: a, o: o, template: template.DeepCopy(), name: Name(a.Identity)}
	b.main = podspec.Main(b.template)
	variables := slices.Sorted(maps.Keys(a.Env))
	problems := podspec.TaskProblems(spec, template, variables, a.Remote.Resources)
	switch {
	case len(problems) > 0:
		texts := make([]string, len(problems))
		for i, p := range problems {
			texts[i] = p.String()
		}
		return nil, nil, badSpec(errors.New(strings.Join(texts, "; ")))
	case b.main == nil:
		return nil, nil, badSpec(fmt.Errorf("spec.template has no container named %q", podspec.MainContainer))
	case o.HelperImage != "" && len(b.main.Command) == 0:
		return nil, nil, badSpec(errors.New("spec.command is required on nodes with a helper image (set it to the ENTRYPOINT and CMD of the image)"))
	}
	meta := metav1.ObjectMeta{
		Name: b.name, Namespace: spec.GetNamespace(), Labels: labels(a.Identity),
		Annotations: map[string]string{AnnotationIdentity: identityText(a.Identity), AnnotationClaim: FormatClaim(a.Identity.Claim, o.Holder)},
	}
	if meta.Namespace == "" {
		meta.Namespace = o.Namespace
	}
	if program, err := interpreter.New(spec.GetCommand().GetStringValue(), spec.GetShell()); err == nil {
		b.script = program.InFile()
	}
	secret, err := b.secret(*meta.DeepCopy())
	if err != nil {
		return nil, nil, err
	}
	b.pod(variables)
	return b.job(spec, meta), secret, nil
}

func badSpec(err error) error {
	return &executor.StartError{ExitCode: codeCannotRun, BadSpec: true, Err: fmt.Errorf("k8s_job spec: %w", err)}
}

// Own makes an existing Job the owner of the Secret, so that the Secret is deleted with it.
func Own(secret *corev1.Secret, job *batchv1.Job) {
	secret.OwnerReferences = []metav1.OwnerReference{{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job", Name: job.Name, UID: job.UID}}
}

// builder builds the objects of one attempt.
type builder struct {
	a        executor.Attempt
	o        Options
	name     string
	template *corev1.PodTemplateSpec
	main     *corev1.Container // in template
	script   string            // the command for an interpreter that reads it from a file, or ""
}

// job returns the Job of the pod. Labels and annotations of the spec apply to the Job, too.
func (b *builder) job(spec *v1.K8SJobSpec, meta metav1.ObjectMeta) *batchv1.Job {
	own := meta.Labels
	meta.Labels, meta.Annotations = merged(spec.GetLabels(), own), merged(spec.GetAnnotations(), meta.Annotations)
	b.template.Labels = merged(b.template.Labels, own)
	job := &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job"},
		ObjectMeta: meta,
		Spec: batchv1.JobSpec{
			Parallelism: new(int32(1)), Completions: new(int32(1)), BackoffLimit: new(int32(0)), Suspend: new(false),
			PodReplacementPolicy: new(batchv1.Failed),
			Template:             *b.template,
		},
	}
	if b.a.Remote.Timeout > 0 {
		job.Spec.ActiveDeadlineSeconds = new(seconds(b.a.Remote.Timeout + deadlineMargin))
	}
	return job
}

// merged returns the entries of both maps. Where both have a key, b wins.
func merged(a, b map[string]string) map[string]string {
	all := maps.Clone(b)
	for key, value := range a {
		if _, ok := b[key]; !ok {
			all[key] = value
		}
	}
	return all
}

// seconds returns a duration in seconds, rounded up.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
