//go:build engines

package disk

import (
	"crypto/ed25519"
	"encoding/pem"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"switchyard/activities/executor/qemu/seed"
	"switchyard/dev/guestimage"
	"switchyard/dev/testneeds"
)

// newKey returns a key, its signer, and its public key in one line.
func newKey(t *testing.T) (ed25519.PrivateKey, ssh.Signer, string) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return key, signer, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
}

func TestLongDiskOfARunningMachineBecomesAnImageThatBoots(t *testing.T) {
	testneeds.Long(t)
	dir := t.TempDir()
	_, login, loginLine := newKey(t)
	key, host, hostLine := newKey(t)
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	cd := filepath.Join(dir, "seed.iso")
	err = seed.Write(cd, seed.Seed{
		InstanceID: "a", Hostname: "a", AuthorizedKeys: []string{loginLine}, HostKey: string(pem.EncodeToMemory(block)), HostKeyPublic: hostLine,
	})
	if err != nil {
		t.Fatal(err)
	}
	output := func(guest *guestimage.Guest, command string) string {
		session, err := guest.Login("root", login, host.PublicKey()).NewSession()
		if err != nil {
			t.Fatal(err)
		}
		out, err := session.CombinedOutput(command)
		if err != nil {
			t.Errorf("%s: %v: %s", command, err, out)
		}
		return string(out)
	}
	overlay, image := filepath.Join(dir, "disk.qcow2"), filepath.Join(dir, "image.qcow2")
	if err := CreateOverlay(t.Context(), overlay, baseOf(t, guestimage.Build(t)), 1<<30); err != nil {
		t.Fatal(err)
	}
	running := guestimage.Start(t, guestimage.Options{Disk: overlay, Seed: cd})
	if got := strings.TrimSpace(output(running, "echo kept > file; sync; blockdev --getsize64 /dev/vda")); got != "1073741824" {
		t.Errorf("the disk of the machine has %s bytes", got)
	}
	if err := Flatten(t.Context(), overlay, image, func(line string) { t.Log(line) }); err != nil {
		t.Fatal(err)
	}
	if _, err := Inspect(t.Context(), image); err != nil {
		t.Error(err)
	}
	second := guestimage.Start(t, guestimage.Options{Image: image, Seed: cd})
	if got := output(second, "cat file"); got != "kept\n" {
		t.Errorf("the machine of the image has %q", got)
	}
}
