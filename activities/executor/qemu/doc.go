// Package qemu runs tasks of type "vps" as virtual machines, by QEMU: with KVM where the node has it, else by emulation. A
// machine's process outlives the worker, and the next one finds it by its folder. The package may import proto,
// activities/executor, activities/executor/container (to decode specs), the packages below it, activities/executor/guest,
// activities/executor/shell/cgroup, libraries and the standard library.
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
//	vm.json                whose it is, its keys and the variables of the attempt; it comes first and goes last
//	qmp, qmp2              sockets of QEMU, of which each serves one worker: the second is for the next one while the first hangs
//	pid, exit              the process of QEMU, and its exit code once it has ended and all that it has printed is in the file console
//	console                what QEMU and the serial console print, 64 MiB at most
//	capture.qcow2          a copy of the disk that is being made or sent
//
// A process is known by the folder in its command line, so that neither a later process of its number nor a reboot of the node is
// mistaken for it. The machine's own key is made by the node and given to it by the seed, so that the node logs in to no other one.
package qemu
