//go:build engines

package guestimage

import (
	"context"
	"crypto/ed25519"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"switchyard/activities/executor/qemu/seed"
	"switchyard/dev/testneeds"
)

// newSigner returns a new key.
func newSigner(t *testing.T) (ssh.Signer, ed25519.PrivateKey) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return signer, key
}

// public returns the public key as an authorized_keys line.
func public(key ssh.Signer) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key.PublicKey())))
}

// newSeed writes a seed for a user with a key, and returns its path and the machine's public key.
func newSeed(t *testing.T, host, user string, key ssh.Signer) (path string, hostKey ssh.PublicKey) {
	t.Helper()
	signer, private := newSigner(t)
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "seed.iso")
	err = seed.Write(path, seed.Seed{
		InstanceID: "i-" + host, Hostname: host, User: user, AuthorizedKeys: []string{public(key) + ` "a" # 'comment'`},
		HostKey: string(pem.EncodeToMemory(block)), HostKeyPublic: public(signer),
	})
	if err != nil {
		t.Fatal(err)
	}
	return path, signer.PublicKey()
}

// output runs a command in the guest and returns its output.
func output(t *testing.T, client *ssh.Client, command string) string {
	t.Helper()
	session, err := client.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	out, err := session.CombinedOutput(command)
	if err != nil {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestLongGuestTakesItsSeedAndKeepsItsFiles(t *testing.T) {
	testneeds.Long(t)
	key, _ := newSigner(t)
	path, hostKey := newSeed(t, "build-1", "ada", key)
	began := time.Now()
	guest := Start(t, Options{Seed: path})
	client := guest.Login("ada", key, hostKey)
	t.Logf("the first login was possible after %v", time.Since(began))
	if info, err := os.Stat(guest.Disk); err != nil || info.Size() > 10<<20 {
		t.Errorf("the overlay has %d bytes, %v", info.Size(), err)
	}
	if got := output(t, client, "hostname; whoami; echo $HOME"); got != "build-1\nada\n/home/ada" {
		t.Errorf("the guest says %q", got)
	}
	files, err := sftp.NewClient(client)
	if err != nil {
		t.Fatal(err)
	}
	if err := files.Mkdir("folder"); err != nil {
		t.Error(err)
	}
	output(t, client, "echo kept > file")

	guest.PressPower()
	ctx, cancel := context.WithTimeout(t.Context(), bootLimit)
	defer cancel()
	if err := guest.AwaitEnd(ctx); err != nil {
		t.Fatal(err)
	}
	again := Start(t, Options{Seed: path, Disk: guest.Disk})
	if got := output(t, again.Login("ada", key, hostKey), "cat file; ls -d folder"); got != "kept\nfolder" {
		t.Errorf("after a restart the guest says %q", got)
	}
}

func TestLongDeafGuestIgnoresThePowerButton(t *testing.T) {
	testneeds.Long(t)
	key, _ := newSigner(t)
	path, hostKey := newSeed(t, "deaf", "", key)
	guest := Start(t, Options{Image: BuildDeaf(t), Seed: path})
	client := guest.Login("root", key, hostKey)
	guest.PressPower()
	// A guest that reacts to the power button ends within 3 s.
	for range 10 {
		if got := output(t, client, "sleep 1; whoami"); got != "root" {
			t.Errorf("the guest says %q", got)
		}
	}
}
