// Package sessions is the end of sessions on a node: it does inside of an attempt what a stream asks for.
//
//	SessionHeader ──> Attempts.Enter ──> executor.Inside
//	      <── SessionReply
//	exec        SessionFrames both ways, the last one with the exit code, then the end of the stream
//	connect     the bytes of a TCP connection, half-close included
//	listen      a session of wire in the stream, in which the node opens a stream for each connection
//	sftp        SFTP, version 3
//	read_tar    SessionFrames with the archive, the last one with the error
//	write_tar   SessionFrames with the archive and its end; then one with the error
//
// A client keeps its side of an exec open until the last frame: the end of what it sends, other than by a frame that ends standard
// input, means that it has left, and the program is sent SIGHUP. Output is written to the stream as it comes, so that a client that does not read
// slows the program down.
//
// The package may import proto, activities/executor, activities/sessions/wire and the standard library.
package sessions
