// Package container runs tasks of type "container" on a container engine that speaks
// Docker's API: Docker from 20.10 on, rootless Docker, Podman's Docker socket. It may
// import proto, activities/executor, activities/executor/lifecycle, workflows/interpreter, workflows/policy, Docker's client
// with the parser of image names, golang.org/x/sys and the standard library; it does not depend
// on Temporal.
//
//	parse, policy, image, address ──▶ create ──▶ find the program ──▶ attach ──▶ start
//	                                                                               │
//	remove, or keep ◀── how it ended ◀── wait for the end, pass on the output ◀────┘
//
// The engine may be away or hang at any point. Before the container has started, calls of the engine then fail within seconds. A
// container that runs continues, and the executor learns of its end when the engine is back. Its output arrives over the attached
// stream, and after an interruption from what the engine has retained. A container that must end while the engine does not answer
// is ended through its process, if the process is on this machine and this process may signal it. What cannot be removed is
// removed when the engine is back, by the next worker at the latest.
//
// An Executor leaves images to imageStore, mounts to mountPolicy and addresses to addresses. A running container has a phase, which
// says what may be done to it, and a mainProcess; each has a lock of its own.
//
// Each version of an environment is loaded once, and its image is named switchyard-environment/<name>:<version>-<digest>. A
// capture copies the files of a container, which is paused meanwhile, to an unlinked file, and builds from it an archive as
// docker save would write it. The engine never holds an image of the capture.
package container
