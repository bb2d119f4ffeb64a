// Package gitclone fetches one commit of a git repository by the program git.
//
// It imports the standard library only, and activities/secrets/mask.
package gitclone
