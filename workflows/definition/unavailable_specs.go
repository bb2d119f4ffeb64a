package definition

import (
	"regexp"
	"strings"

	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
)

// Forms of what the specs of the types name that no executor runs yet.
var (
	diskSize  = regexp.MustCompile(`^[1-9][0-9]*[KMGT]$`)
	publicKey = regexp.MustCompile(`^(ssh-|ecdsa-|sk-)[a-z0-9@.-]+ [A-Za-z0-9+/]+=*( .*)?$`)
)

// qemuBackend is the backend of sessions that are virtual machines.
const qemuBackend = "qemu"

// unavailableSpec checks the spec of a type that no executor runs yet.
func (d *decoder) unavailableSpec(spec proto.Message, p *source.Path) {
	if vps, ok := spec.(*v1.VpsSpec); ok {
		d.vpsSpec(vps, p)
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

// notBlank reports a text of spaces where one is needed; the model reports an empty one.
func (d *decoder) notBlank(text string, p *source.Path) {
	if text != "" && strings.TrimSpace(text) == "" && !d.IsSettled(p) {
		d.Add(d.locate(p), p, p.Local()+" is blank", "")
	}
}
