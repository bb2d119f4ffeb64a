package manifest

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"switchyard/activities/executor/k8sjob/podhelper"
	"switchyard/workflows/interpreter"
	"switchyard/workflows/podspec"
)

// Volumes of the pod, and their mount points in its containers.
const (
	inVolume  = podspec.NamePrefix + "in"
	binVolume = podspec.NamePrefix + "bin"
	outVolume = podspec.NamePrefix + "out"

	inDir  = podspec.InputDirectory
	binDir = podspec.Directory + "/bin"
	outDir = podspec.Directory + "/out"
)

// HelperContainer is the init container that copies the helper into the pod.
const HelperContainer = podspec.NamePrefix + "helper"

const (
	// helper is the path of the helper in the task's container.
	helper = binDir + "/switchyard"
	// installDir is where the init container mounts the volume of binDir. Its image may have the program itself at
	// podspec.Directory.
	installDir = "/" + binVolume
)

// onNode lists the variables that name files and directories of the node.
var onNode = []string{"SWITCHYARD_INPUT", "SWITCHYARD_OUTPUT", "SWITCHYARD_CONTEXT_UPDATE", "SWITCHYARD_CHECKPOINT", "SWITCHYARD_SHARED_DIR", "SWITCHYARD_LOCAL_TEMP_DIR"}

// pod completes the template. variables are the sorted names of the attempt's variables.
func (b *builder) pod(variables []string) {
	pod := &b.template.Spec
	pod.RestartPolicy = corev1.RestartPolicyNever
	pod.TerminationGracePeriodSeconds = new(max(1, seconds(b.a.Grace))) // 0 would kill the program without SIGTERM
	b.resources()
	b.env(variables)
	b.main.TerminationMessagePath = corev1.TerminationMessagePathDefault
	b.main.TerminationMessagePolicy = corev1.TerminationMessageReadFile
	given := []corev1.KeyToPath{{Key: inputKey, Path: inputKey}}
	if b.script != "" {
		given = append(given, corev1.KeyToPath{Key: interpreter.File, Path: interpreter.File})
	}
	b.mount(inVolume, inDir, true, corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: b.name, Items: given}})
	if b.o.HelperImage != "" {
		b.helper()
	}
}

// mount adds a volume to the pod and mounts it in the program's container.
func (b *builder) mount(name, at string, readOnly bool, source corev1.VolumeSource) {
	b.template.Spec.Volumes = append(b.template.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
	b.main.VolumeMounts = append(b.main.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: at, ReadOnly: readOnly})
}

// resources adds the resources of the task to both requests and limits.
func (b *builder) resources() {
	r := &b.main.Resources
	for name, quantity := range podspec.Resources(b.a.Remote.Resources) {
		for _, list := range []*corev1.ResourceList{&r.Requests, &r.Limits} {
			if *list == nil {
				*list = corev1.ResourceList{}
			}
			(*list)[name] = quantity
		}
	}
}

// env puts the variables of the attempt before those of the template, so that the latter can refer to them.
func (b *builder) env(variables []string) {
	secret, files := b.secretKeys(), b.files()
	var env []corev1.EnvVar
	for _, name := range variables {
		switch key, isSecret := secret[name]; {
		case slices.Contains(onNode, name):
		case isSecret:
			env = append(env, corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: b.name}, Key: key,
			}}})
		default:
			env = append(env, corev1.EnvVar{Name: name, Value: strings.ReplaceAll(b.a.Env[name], "$", "$$")}) // Kubernetes expands $(NAME), and turns $$ into $
		}
	}
	b.main.Env = slices.Concat(env, files, b.main.Env)
}

// files returns the variables that name the attempt's files in the pod.
func (b *builder) files() []corev1.EnvVar {
	files := []corev1.EnvVar{{Name: "SWITCHYARD_INPUT", Value: inDir + "/" + inputKey}}
	if b.o.HelperImage == "" {
		return append(files, corev1.EnvVar{Name: "SWITCHYARD_OUTPUT", Value: corev1.TerminationMessagePathDefault})
	}
	return append(files,
		corev1.EnvVar{Name: "SWITCHYARD_OUTPUT", Value: outDir + "/output"},
		corev1.EnvVar{Name: "SWITCHYARD_CONTEXT_UPDATE", Value: outDir + "/context-update"},
		corev1.EnvVar{Name: podhelper.FrameVariable, Value: b.o.Frame})
}

// helper adds an init container that installs the helper, and makes the helper start the program of the main container.
func (b *builder) helper() {
	empty := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	b.mount(binVolume, binDir, true, empty)
	b.mount(outVolume, outDir, false, empty)
	b.main.Command = slices.Concat([]string{helper, podhelper.Command, "run", "--"}, b.main.Command, b.main.Args)
	b.main.Args = nil
	install := corev1.Container{
		Name: HelperContainer, Image: b.o.HelperImage, Args: []string{podhelper.Command, "install", installDir}, // the entry point of the image is switchyard
		VolumeMounts: []corev1.VolumeMount{{Name: binVolume, MountPath: installDir}},
		// Resources that the main container reserves anyway cost the cluster nothing more, and quotas may require
		// limits.
		Resources: corev1.ResourceRequirements{Requests: ofMachine(b.main.Resources.Requests), Limits: ofMachine(b.main.Resources.Limits)},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
	b.template.Spec.InitContainers = slices.Insert(b.template.Spec.InitContainers, 0, install)
}

// ofMachine returns the resources that every machine has, without devices.
func ofMachine(list corev1.ResourceList) corev1.ResourceList {
	var some corev1.ResourceList
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		if quantity, ok := list[name]; ok {
			if some == nil {
				some = corev1.ResourceList{}
			}
			some[name] = quantity
		}
	}
	return some
}
