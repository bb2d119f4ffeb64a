// Package container runs tasks of type "container" on a container engine that speaks
// Docker's API: Docker from 20.10 on, rootless Docker, Podman's Docker socket. It may
// import proto, activities/executor, workflows/policy, Docker's client with the parser of
// image names, golang.org/x/sys and the standard library; it knows no Temporal.
//
//	parse, policy, image, address ──▶ create ──▶ find the program ──▶ attach ──▶ start
//	                                                                               │
//	remove, or keep ◀── how it ended ◀── wait for the end, pass on the output ◀────┘
//
// The engine may be away or hang at any point. What is asked of it before the start ends
// with an error then, within some seconds. A container that runs continues, and its end is
// learned when the engine is back; its output comes by the attached stream, and after a
// cut by what the engine has kept. What must end although the engine does not answer is
// ended by its process, where that is on this machine and this process may do it. What
// cannot be removed is removed when the engine is back, by the next worker at the latest.
//
// An environment is loaded once a version, and its image is named switchyard-environment/<name>:<version>-<digest>. A capture copies
// the files of a container, which is paused meanwhile, to a file without a name, and makes of it what docker save would write: the
// engine gets no image of it.
package container
