// Package vps runs tasks of type "vps": machines to log in to, which last until they are stopped. The spec names the
// backend: a machine is either a container, whose spec this package translates for activities/executor/container, or a
// virtual machine of activities/executor/qemu. The package may import proto, activities/executor, these two and the
// standard library.
//
//	          ┌───────── restart ─────────┐
//	          ▼                           │
//	start ──▶ waits, is entered ──────────┤
//	          │        ▲                  ├──▶ stop, kill, its own end ──▶ removed
//	 let go   ▼        │ reattach         │
//	        runs without a worker ────────┘
package vps
