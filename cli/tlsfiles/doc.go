// Package tlsfiles makes the TLS configurations of gateways and of their clients from files in PEM.
//
// It may import cli/exit.
package tlsfiles
