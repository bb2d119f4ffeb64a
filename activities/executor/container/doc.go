// Package container runs tasks of type "container" on a container engine that speaks
// Docker's API: Docker from 20.10 on, rootless Docker, Podman's Docker socket. It may
// import proto, the executor interface, Docker's client and the standard library; it
// knows no Temporal.
package container
