// Package exit holds the exit codes of the command line and the errors that carry
// them. A command returns an error, and package cli exits with the code that CodeOf
// returns for it.
//
// It imports nothing of Switchyard.
package exit
