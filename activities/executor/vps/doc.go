// Package vps runs tasks of type "vps": machines to log in to, which last until they are stopped. A machine is a container;
// this package translates its spec, and activities/executor/container runs it. The package may import proto,
// activities/executor, activities/executor/container and the standard library.
//
//	          ┌───────── restart ─────────┐
//	          ▼                           │
//	start ──▶ waits, is entered ──────────┤
//	          │        ▲                  ├──▶ stop, kill, its own end ──▶ removed
//	 let go   ▼        │ reattach         │
//	        runs without a worker ────────┘
package vps
