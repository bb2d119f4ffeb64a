// Package artifacts stores trees of files by their contents, and brings them back on other machines.
//
//	files ──▶ content, joined ──▶ chunks ──▶ the store has it? ──no──▶ put ──┐
//	   │                            └───────────── yes ─────────────────────┴──▶ manifest ──▶ Artifact, in the result of the attempt
//	   └────▶ tree: names, modes, times, links ──────────────────────────────────▲
//
// A manifest is stored after all of its chunks, and belongs to one dispatch. A chunk is shared by everything with the same
// content. Its key is a digest under a prefix of this package, so that a published checksum of a file is no key; only whoever may
// read a manifest knows the keys. Unused chunks are removed by store.SweepChunks, which reads what Used yields; a draft
// protects the chunks on which an unfinished upload relies.
//
// The files of a run that is to be submitted are stored in the same way, by whoever submits it (SaveSource). A gateway takes them only with
// a proof that the sender has the contents of every chunk.
//
// A node keeps chunks in a Cache, from which later tasks are served.
//
// The package may import proto and activities/store; it does not depend on Temporal.
package artifacts
