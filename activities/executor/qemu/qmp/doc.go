// Package qmp talks to a virtual machine of QEMU over the QEMU Machine Protocol, on the machine's socket. It imports
// only the standard library. The protocol is described at https://www.qemu.org/docs/master/interop/qmp-spec.html.
//
//	connect ──▶ greeting ──▶ qmp_capabilities ──▶ commands and their answers, events between them
package qmp
