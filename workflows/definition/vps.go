package definition

import (
	"fmt"
	slashed "path"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/condition"
	"switchyard/workflows/definition/source"
	"switchyard/workflows/sshkey"
)

// diskSize matches the size of a virtual machine's disk.
var diskSize = lazyPattern(`^[1-9][0-9]*[KMGT]$`)

// loginName matches the name of a virtual machine's user.
var loginName = lazyPattern(`^[a-z_][a-z0-9_-]{0,31}$`)

// machineRules checks the specs of tasks of type vps.
type machineRules struct{ containerRules }

// check checks the spec of a task of type vps.
func (r machineRules) check(spec *v1.VpsSpec, p *source.Path) {
	if spec.GetBackend() == v1.BackendQEMU {
		r.virtualMachine(spec, p)
	} else {
		r.excluded(spec, p, "virtual machines, and this machine is a container; backend: qemu makes it a virtual machine", "vmImage", "vmDiskSize")
		r.fields(spec, p)
	}
	r.sshPublicKey(spec.GetSshPublicKey(), p.Field("sshPublicKey"))
	if idle := p.Field("idleTimeout"); !condition.HasTemplate(spec.GetIdleTimeout()) {
		r.durationOr(spec.GetIdleTimeout(), idle, `"0" means never`)
	}
	if program := p.Field("init"); len(spec.GetInit()) > 0 && spec.GetInit()[0] == "" {
		r.Add(r.locate(program.Item(0)), program, "spec.init begins with an empty string; the program to run is missing", "such as [/sbin/init]")
	}
}

// virtualMachine checks the fields for virtual machines and reports the fields for containers.
func (r machineRules) virtualMachine(spec *v1.VpsSpec, p *source.Path) {
	r.imageOrEnvironment(p, "vmImage", spec.GetVmImage(), spec.GetEnvironment(), "write the path of a disk image on the node, the URL of an object in a bucket, or the name of an environment")
	r.environment(spec.GetEnvironment(), p)
	r.word(spec.GetVmImage(), p.Field("vmImage"), isVMImage, "neither an absolute path, nor the URL of an object, nor the name of an environment",
		`such as "/srv/images/debian.qcow2", "s3://bucket/debian.qcow2" or "desk"`)
	r.word(spec.GetVmDiskSize(), p.Field("vmDiskSize"), diskSize().MatchString, "not a valid size", `such as "50G"; units are K, M, G and T`)
	r.word(spec.GetUser(), p.Field("user"), loginName().MatchString, "not a valid user name", "the machine creates the user if it does not exist")
	r.word(spec.GetWorkingDirectory(), p.Field("workingDirectory"), slashed.IsAbs, "not an absolute path", "it is a directory in the machine")
	r.word(spec.GetNetwork(), p.Field("network"), func(text string) bool { return text == "none" }, "not a network of a virtual machine",
		`leave it out, or write "none" for a machine that reaches neither its node nor other computers`)
	r.excluded(spec, p, "containers, and this machine is a virtual machine", "image", "mounts", "init", "privileged", "ip", "capAdd", "shmSizeMb", "ulimits",
		"pullPolicy", "registryAuth", "imageTarball")
}

// sshPublicKey checks the keys that may log in. A text that is not a key may be a secret, so neither the message nor the
// snippet of the problem shows it.
func (r machineRules) sshPublicKey(text string, p *source.Path) {
	if text == "" || condition.HasTemplate(text) {
		return
	}
	_, fault := sshkey.Parse(text)
	if fault == nil {
		return
	}
	subject, at := p.Local(), r.locate(p)
	if fault.Line > 1 {
		subject, at = fmt.Sprintf("line %d of %s", fault.Line, subject), r.locateInText(text, fault.Offset, p)
	}
	r.AddHidden(at, p, subject+" "+fault.Reason, fault.Hint)
}

// isVMImage reports whether a text can name the image of a virtual machine.
func isVMImage(text string) bool {
	return v1.IsEnvironmentName(text) || slashed.IsAbs(text) || bucketObject().MatchString(text)
}
