// Package qemu runs tasks of type "vps" as virtual machines, by QEMU: with KVM where the node has it, else by emulation. A
// machine's process outlives the worker, and the next one finds it by its socket. The package may import proto,
// activities/executor, activities/executor/container (to decode specs), the packages below it, activities/executor/guest, libraries and
// the standard library.
//
//	          ┌──── restart, reboot ──────┐
//	          ▼                           │
//	start ──▶ boots, is entered by SSH ───┤
//	          │        ▲                  ├──▶ stop (ACPI, then an end by force), its own power-off ──▶ removed
//	 let go   ▼        │ reattach (QMP)   │
//	        runs without a worker ────────┘
package qemu
