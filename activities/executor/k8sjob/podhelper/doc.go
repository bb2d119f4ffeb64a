// Package podhelper brings small files out of a pod that shares neither a disk nor a network with the node: within the log of
// its container. It imports golang.org/x/sys and the standard library alone.
//
//	init container, image of Switchyard    switchyard pod-helper install DIR
//	                                         copies the binary to DIR/switchyard, in a volume of the pod
//	main container, image of the task      DIR/switchyard pod-helper run -- COMMAND ARGS...
//	                                         starts COMMAND, waits, and prints the frames
//	node                                   Reader
//	                                         passes the log on without the frames, and has the files
//
// # Frames
//
// A frame is a line that begins with the byte 0x1e, "switchyard" and the nonce of SWITCHYARD_FRAME. The first one lists the
// files, also when there are none, so that a Reader can tell a task without files from a log that was cut:
//
//	␞switchyard NONCE files output=whole:SIZE:SHA256 context-update=large:SIZE
//	␞switchyard NONCE output 1/2 BASE64
//	␞switchyard NONCE output 2/2 BASE64
//
// The nonce keeps a program from printing a frame by accident, and is not in the program's environment. It is no secret: a
// program that wants to forge its own output may as well write that to the file.
//
// A frame can stand behind text that has no newline: a log merges two streams, and has a long line of standard error in
// several pieces.
//
// # The program
//
// The helper is the parent of the program, and usually process 1 of the container. Signals go to the process group of the
// program, and orphans are reaped. What the program leaves behind when it exits has a moment to end, and is killed then: it
// could print something into the frames.
package podhelper
