// Package e2e tests the built binary from outside, as its users see it: exit
// codes, JSON, signals, kill -9, and third-party tools (temporal, grpcurl, curl).
// It contains only tests.
package e2e
