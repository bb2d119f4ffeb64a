// Package sessions serves sessions on a node: it carries out inside an attempt what a stream requests.
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
// A client keeps its side of an exec stream open until the last frame. If its data ends in any other way than with a frame that
// ends standard input, the client has left, and the program gets SIGHUP. Output is written to the stream as it is produced, so a
// client that does not read slows the program down.
//
// The package may import proto, activities/executor, activities/sessions/wire and the standard library.
package sessions
