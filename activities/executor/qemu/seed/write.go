package seed

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/iso9660"
)

const (
	// volumeID is the label by which cloud-init finds a seed.
	volumeID = "cidata"
	// blockSize is the block size of a CD, in bytes.
	blockSize = 2048
)

// Write writes a seed as a CD image to path, which must not exist. Only the owner may read the file, because it
// contains the private key of the machine.
func Write(path string, s Seed) (err error) {
	if err := s.validate(); err != nil {
		return fmt.Errorf("seed of %s: %w", s.Hostname, err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("write seed %s: %w", path, err)
		}
	}()
	user, err := userDataText(s)
	if err != nil {
		return err
	}
	meta, err := metaDataText(s)
	if err != nil {
		return err
	}
	image, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, image.Close())
		if err != nil {
			err = errors.Join(err, os.Remove(path))
		}
	}()
	return writeISO(image, map[string][]byte{"user-data": user, "meta-data": meta})
}

// writeISO writes the files of a root folder as a CD image. The library collects them in a temporary folder, which is
// beside the image rather than in /tmp, because a seed contains a private key.
func writeISO(image *os.File, files map[string][]byte) (err error) {
	workspace, err := os.MkdirTemp(filepath.Dir(image.Name()), ".seed-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(workspace)) }()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(workspace, name), text, 0o600); err != nil {
			return err
		}
	}
	cd, err := iso9660.Create(file.New(image, false), 0, 0, blockSize, workspace)
	if err != nil {
		return err
	}
	// The library pads identifiers with zeros, but ISO 9660 requires spaces.
	return cd.Finalize(iso9660.FinalizeOptions{RockRidge: true, VolumeIdentifier: fmt.Sprintf("%-32s", volumeID)})
}
