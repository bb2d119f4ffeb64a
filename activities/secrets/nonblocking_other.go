//go:build !unix

package secrets

const nonBlocking = 0
