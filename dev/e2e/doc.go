// Package e2e tests the built binary from outside, as its users meet it: exit
// codes, JSON, signals, kill -9, and the tools that other people bring along
// (temporal, grpcurl, curl). It has no code of its own beside tests.
package e2e
