package definition

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
)

// Forms of what the specs of the types name that no executor runs yet.
var (
	diskSize      = regexp.MustCompile(`^[1-9][0-9]*[KMGT]$`)
	publicKey     = regexp.MustCompile(`^(ssh-|ecdsa-|sk-)[a-z0-9@.-]+ [A-Za-z0-9+/]+=*( .*)?$`)
	kubeNamespace = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	kubeLabel     = regexp.MustCompile(`^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)
	kubeValue     = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)
)

// qemuBackend is the backend of sessions that are virtual machines.
const qemuBackend = "qemu"

// unavailableSpec checks the spec of a type that no executor runs yet.
func (d *decoder) unavailableSpec(spec proto.Message, p *source.Path) {
	switch spec := spec.(type) {
	case *v1.VpsSpec:
		d.vpsSpec(spec, p)
	case *v1.K8SJobSpec:
		d.kubernetesSpec(spec, p)
	}
}

func (d *decoder) vpsSpec(spec *v1.VpsSpec, p *source.Path) {
	disk := p.Field("diskSize")
	d.word(spec.GetDiskSize(), disk, diskSize.MatchString, "no size", `such as "50G"; units are K, M, G and T`)
	if spec.GetDiskSize() != "" && spec.GetBackend() != qemuBackend && !d.IsSettled(disk) && !d.IsSettled(p.Field("backend")) {
		d.Add(d.locateKey(disk), disk, "spec.diskSize is for a virtual machine", "add backend: qemu, or leave diskSize out")
	}
	if spec.GetBackend() != qemuBackend {
		d.word(spec.GetImage(), p.Field("image"), isImage, "no name of an image", `such as "ubuntu:22.04"; names are in lower case`)
	}
	d.word(spec.GetSshPublicKey(), p.Field("sshPublicKey"), publicKey.MatchString, "no public key", `write a line of a file .pub, such as "ssh-ed25519 AAAA... me@host"`)
	d.mounts(spec.GetMounts(), p.Field("mounts"))
}

func (d *decoder) kubernetesSpec(spec *v1.K8SJobSpec, p *source.Path) {
	d.word(spec.GetImage(), p.Field("image"), isImage, "no name of an image", `such as "ubuntu:22.04"; names are in lower case`)
	d.word(spec.GetNamespace(), p.Field("namespace"), kubeNamespace.MatchString, "no namespace", "at most 63 of a-z, 0-9 and '-', the first and last a letter or digit")
	for _, name := range slices.Sorted(maps.Keys(spec.GetLabels())) {
		at := p.Field("labels").Key(name)
		if !kubeLabel.MatchString(name) && !d.IsSettled(at) {
			d.Add(d.locateKey(at), at, "label "+source.Quote(name)+" is not allowed in Kubernetes", `such as "team" or "example.com/team"`)
		}
		d.word(spec.GetLabels()[name], at, kubeValue.MatchString, "no value of a label", "at most 63 letters, digits, '-', '_' and '.', the first and last a letter or digit")
	}
}

// notBlank reports a text of spaces where one is needed; the model reports an empty one.
func (d *decoder) notBlank(text string, p *source.Path) {
	if text != "" && strings.TrimSpace(text) == "" && !d.IsSettled(p) {
		d.Add(d.locate(p), p, p.Local()+" is blank", "")
	}
}
