//go:build !unix

package gitclone

import "os/exec"

// ownGroup does nothing: git ends its helpers itself.
func ownGroup(*exec.Cmd) {}
