// Package disk has the disks of virtual machines: the images at their base, and the overlays that machines write to, by
// qemu-img. A node keeps images that it downloads; no machine has a copy of its own.
//
//	reference ──▶ Images.Ensure: path on the node, object of a bucket, or environment ──▶ Inspect ──▶ Base
//	                                                                                                   │
//	                   Flatten: an image without a base ◀── machine writes ◀── CreateOverlay ◀─────────┘
//
// An image is whatever a user brings. A qcow2 image can name other files of the node, which QEMU would open, so Inspect reads its
// header before a program of QEMU does, and no program guesses the format of an image. The calls of qemu-img are
// bounded in time, memory and what they write.
//
// The package may import proto, activities/executor and activities/executor/singleflight; it knows no Temporal.
package disk
