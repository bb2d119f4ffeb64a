// Package enginetest provides a container engine to tests, which are in files with the build tag "engines".
package enginetest
