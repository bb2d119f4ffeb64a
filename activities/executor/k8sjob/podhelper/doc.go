// Package podhelper transfers small files out of a pod that shares neither a disk nor a network with the node: through
// the log of its container. It imports golang.org/x/sys and the standard library alone.
//
//	init container, image of Switchyard    switchyard pod-helper install DIR
//	                                         copies the binary to DIR/switchyard, in a volume of the pod
//	main container, image of the task      DIR/switchyard pod-helper run -- COMMAND ARGS...
//	                                         starts COMMAND, waits, and prints the frames
//	node                                   Reader
//	                                         passes the log on without the frames, and collects the files
//
// # Frames
//
// A frame is a line that begins with the byte 0x1e, "switchyard" and the nonce of SWITCHYARD_FRAME. The first frame
// lists the files, even if there are none, so that a Reader can tell a task without files from a truncated log:
//
//	␞switchyard NONCE files output=whole:SIZE:SHA256 context-update=large:SIZE
//	␞switchyard NONCE output 1/2 BASE64
//	␞switchyard NONCE output 2/2 BASE64
//
// The nonce prevents accidental frames in a program's output, and is not in the program's environment. It is no secret:
// a program that wants to forge its own output may as well write it to the file.
//
// A frame can follow text without a newline: a log merges two streams, and splits a long line of standard error into
// several pieces.
//
// # The program
//
// The helper is the parent of the program, and usually process 1 of the container. It forwards signals to the process
// group of the program and reaps orphans. Processes that the program leaves behind have a moment to end and are then
// killed, because they could print into the frames.
package podhelper
