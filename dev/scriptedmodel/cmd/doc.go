// Command cmd serves a model that follows a script, for examples and manual trials:
//
//	go run ./dev/scriptedmodel/cmd -script FILE [-address 127.0.0.1:8089]
//
// The form of a script is in package scriptedmodel. SIGINT and SIGTERM end the server, which then counts the outcomes
// of its replies.
//
// It may import dev/scriptedmodel.
package main
