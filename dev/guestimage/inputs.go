package guestimage

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"slices"
	"testing"

	"switchyard/dev/testneeds"
)

// sources holds the build recipe and the files of the guest.
//
//go:embed build.sh guest
var sources embed.FS

// sftpServer is the path at which Debian's package openssh-sftp-server installs the program.
const sftpServer = "/usr/lib/openssh/sftp-server"

// guestPrograms are copied into the image, and buildPrograms create it. Both map names to Debian packages.
var (
	guestPrograms = map[string]string{
		"busybox": "busybox-static", "dropbear": "dropbear-bin", "dropbearkey": "dropbear-bin", "dropbearconvert": "dropbear-bin",
		sftpServer: "openssh-sftp-server",
	}
	buildPrograms = map[string]string{
		"apt-get": "apt", "dpkg-deb": "dpkg", "bash": "bash", "ldd": "libc-bin", "mcopy": "mtools", "mkfs.vfat": "dosfstools",
		"mke2fs": "e2fsprogs", "qemu-img": "qemu-utils", "qemu-system-x86_64": "qemu-system-x86", "syslinux": "syslinux",
	}
)

// needPrograms returns the paths of the programs that are copied into the image. It skips the test if any program is
// missing.
func needPrograms(t testing.TB) []string {
	t.Helper()
	var paths []string
	for _, programs := range []map[string]string{guestPrograms, buildPrograms} {
		for _, name := range slices.Sorted(maps.Keys(programs)) {
			path, err := lookPath(name)
			if err != nil {
				testneeds.Missing(t, "%s is missing, which the virtual machine image needs; Debian has it in %s", name, programs[name])
			}
			if _, copied := guestPrograms[name]; copied {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

// lookPath finds a program, also in folders that only root has in PATH.
func lookPath(name string) (string, error) {
	path, err := exec.LookPath(name)
	for _, folder := range []string{"/usr/sbin/", "/sbin/"} {
		if err != nil {
			path, err = exec.LookPath(folder + name)
		}
	}
	return path, err
}

// recipe returns the sources by name.
func recipe() (map[string][]byte, error) {
	files := map[string][]byte{}
	err := fs.WalkDir(sources, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files[path], err = sources.ReadFile(path)
		return err
	})
	return files, err
}

// digestOf returns a digest of everything that images are built from, except the kernel: a new Debian kernel does not
// require a new build.
func digestOf(files map[string][]byte, programs []string) (string, error) {
	hash := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(hash, "%s %d\n%s", name, len(files[name]), files[name])
	}
	for _, path := range programs {
		file, err := os.Open(path)
		if err != nil {
			return "", err
		}
		_, err = io.Copy(hash, file)
		_ = file.Close()
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}
