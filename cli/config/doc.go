// Package config sets the flags of a command: from the command line, else from the
// environment, else from the configuration file, else from their defaults. It keeps
// the origin of each value for the log.
//
//	flag > SWITCHYARD_* variable > section of the command in the file > rest of the file > default
//
// It may import proto, workflows/definition, workflows/nearest and cli/exit.
package config
