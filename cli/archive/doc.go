// Package archive packs files of this machine into a tar archive, and unpacks one that a task has sent, which is not trusted:
// nothing that it holds comes to lie outside of the folder that it is for, and no file has its name before it is whole.
//
//	Pack:   folder ──> tar ──> task
//	Unpack: task ──> tar ──> temporary file ── whole ──> its name
//
// It imports the standard library, and nothing of this module.
package archive
