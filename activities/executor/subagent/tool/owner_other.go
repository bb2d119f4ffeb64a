//go:build !unix

package tool

import "os"

const openFlags = 0

// owner is of no use where the worker cannot give files away.
type owner struct{ differs bool }

func ownerOf(*os.Root) (owner, error)        { return owner{}, nil }
func (owner) giveFile(*os.File) error        { return nil }
func (owner) giveDir(*os.Root, string) error { return nil }
