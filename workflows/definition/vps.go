package definition

import (
	"fmt"
	"time"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/condition"
	"switchyard/workflows/definition/source"
	"switchyard/workflows/sshkey"
)

// qemuBackend is the backend of machines that are virtual ones.
const qemuBackend = "qemu"

// diskSize is the form of the size of the disk of a virtual machine.
var diskSize = lazyPattern(`^[1-9][0-9]*[KMGT]$`)

// IdleTimeout returns after how long without a session a machine is stopped, or 0 if that never happens. Expressions in the
// spec have their values.
func IdleTimeout(spec *v1.VpsSpec) time.Duration { return duration(spec.GetIdleTimeout()) }

// vpsSpec checks the spec of a task of type vps.
func (d *decoder) vpsSpec(spec *v1.VpsSpec, p *source.Path) {
	d.vpsBackend(spec, p)
	d.containerFields(spec, p)
	d.sshPublicKey(spec.GetSshPublicKey(), p.Field("sshPublicKey"))
	if idle := p.Field("idleTimeout"); !condition.HasTemplate(spec.GetIdleTimeout()) {
		d.durationOr(spec.GetIdleTimeout(), idle, `"0" is never`)
	}
	if program := p.Field("init"); len(spec.GetInit()) > 0 && spec.GetInit()[0] == "" && !d.IsSettled(program) {
		d.Add(d.locate(program.Item(0)), program, "spec.init begins with an empty string; the program to run is missing", "such as [/sbin/init]")
	}
}

// vpsBackend checks what a machine is made of.
func (d *decoder) vpsBackend(spec *v1.VpsSpec, p *source.Path) {
	backend, disk := p.Field("backend"), p.Field("diskSize")
	virtual := spec.GetBackend() == qemuBackend
	if virtual && !d.IsSettled(backend) {
		d.Add(d.locate(backend), backend, "spec.backend is qemu, and virtual machines are not available yet", "leave backend out, or write docker: the machine is a container then")
	}
	d.word(spec.GetDiskSize(), disk, diskSize().MatchString, "no size", `such as "50G"; units are K, M, G and T`)
	if spec.GetDiskSize() != "" && !virtual && !d.IsSettled(disk) && !d.IsSettled(backend) {
		d.Add(d.locateKey(disk), disk, "spec.diskSize is for a virtual machine, and this one is a container", "leave it out; the disk of a container is that of its node, of which constraints.minDiskGb asks for some")
	}
}

// sshPublicKey checks the keys that may log in. What is no key may be a secret: neither the words nor the line of such a
// problem show it.
func (d *decoder) sshPublicKey(text string, p *source.Path) {
	if text == "" || condition.HasTemplate(text) || d.IsSettled(p) {
		return
	}
	_, fault := sshkey.Parse(text)
	if fault == nil {
		return
	}
	subject, at := p.Local(), d.locate(p)
	if fault.Line > 1 {
		subject, at = fmt.Sprintf("line %d of %s", fault.Line, subject), d.inText(text, fault.Offset, p)
	}
	d.AddHidden(at, p, subject+" "+fault.Reason, fault.Hint)
}

// waitsForMachine warns of a task that starts when a machine has ended, which only a person can cause.
func (d *decoder) waitsForMachine(def *v1.Definition, task *v1.TaskDefinition, at *source.Path) {
	for i, name := range task.GetDependsOn() {
		before := def.GetTasks()[name]
		ends := before.GetTimeout() != "" || before.GetDeadline() != "" || before.GetSpec().GetFields()["idleTimeout"].GetStringValue() != ""
		if p := at.Field("dependsOn").Item(i); v1.Lasts(before.GetType()) && !ends && !d.IsSettled(p) {
			d.Warn(d.locate(p), p, fmt.Sprintf("%s lasts until it is stopped, and this task waits until then", name),
				"give "+name+" an idleTimeout or a timeout if it should end by itself, or leave it out of dependsOn: this task runs beside it then")
		}
	}
}
