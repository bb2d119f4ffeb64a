// Package qemu runs tasks of type "vps" as virtual machines in QEMU, with KVM where the node has it and by emulation
// elsewhere. The process of a machine outlives the worker, and the next worker finds it by its folder. The package may
// import proto, activities/executor, activities/executor/lifecycle, activities/executor/container (to decode specs), the
// packages below it, activities/executor/guest, activities/executor/shell/cgroup, libraries and the standard library.
//
//	          ┌──── restart, reboot ──────┐
//	          ▼                           │
//	start ──▶ boots, is entered by SSH ───┤
//	          │        ▲                  ├──▶ stop (ACPI, then an end by force), its own power-off ──▶ removed
//	 let go   ▼        │ reattach (QMP)   │
//	        runs without a worker ────────┘
//
// # The folder of a machine
//
//	disk.qcow2, seed.iso   its disks: an overlay on the image, and the NoCloud seed
//	vm.json                its owner, its keys and the variables of the attempt; created first and removed last
//	qmp, qmp2              sockets of QEMU, each for one worker: the second is for the next worker while the first one hangs
//	pid, exit              the process id of QEMU, and its exit code, written once QEMU has ended and the file console is complete
//	console                the output of QEMU and of the serial console, 64 MiB at most
//	capture.qcow2          a copy of the disk that is being written or sent
//	capture.qcow2.mark     exists while the machine is paused for a capture
//
// A process is identified by the folder in its command line, so that neither a later process with the same number nor a
// reboot of the node can be mistaken for it. The node creates the host key of the machine and passes it in the seed, so
// that the node never logs in to another machine.
package qemu
