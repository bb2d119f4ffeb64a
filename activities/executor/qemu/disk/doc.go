// Package disk manages the disks of virtual machines with qemu-img: base images, and the overlays that machines write
// to. A node keeps the images that it downloads; no machine has a copy of its own.
//
//	reference ──▶ Images.Ensure: path on the node, object of a bucket, or environment ──▶ Inspect ──▶ Base
//	                                                                                                   │
//	                   Flatten: an image without a base ◀── machine writes ◀── CreateOverlay ◀─────────┘
//
// An image is arbitrary user input. A qcow2 image can name other files of the node, which QEMU would open. Therefore
// Inspect reads the header before any program of QEMU does, and no program guesses the format of an image. Calls of
// qemu-img are bounded in time, memory and the size of what they write.
//
// The package may import proto, activities/executor and activities/executor/singleflight; it does not depend on
// Temporal.
package disk
