// Package gatewayclient connects a node to a gateway, with the node's token.
//
// It imports the standard library and Connect only.
package gatewayclient
