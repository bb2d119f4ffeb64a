// Command cmd serves the model of a script, for examples and for trials by hand:
//
//	go run ./dev/scriptedmodel/cmd -script FILE [-address 127.0.0.1:8089]
//
// The form of a script is in package scriptedmodel. SIGINT and SIGTERM end the server, which then counts the outcomes
// of its replies.
//
// It may import dev/scriptedmodel.
package main
