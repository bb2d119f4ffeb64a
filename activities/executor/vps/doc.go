// Package vps runs tasks of type "vps": machines to log in to, which last until they are stopped. A machine is a container of
// activities/executor/container, of which this package only says how it is made. The package may import proto,
// activities/executor, activities/executor/container and the standard library.
//
//	          ┌───────── restart ─────────┐
//	          ▼                           │
//	start ──▶ waits, is entered ──────────┤
//	          │        ▲                  ├──▶ stop, kill, its own end ──▶ removed
//	 let go   ▼        │ reattach         │
//	        runs without a worker ────────┘
package vps
