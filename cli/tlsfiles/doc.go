// Package tlsfiles creates the TLS configurations of gateways and their clients from PEM files.
//
// It may import cli/exit.
package tlsfiles
