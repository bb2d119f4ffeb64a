package vps

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"
)

// keyPair is a pair of keys that is made for a machine. The private one is given to who asked for it, and to no one else.
type keyPair struct {
	private string // in the form of OpenSSH
	public  string // as a line of a file .pub
}

// newKeyPair makes a pair of keys. comment is what their files call it.
func newKeyPair(comment string) (keyPair, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return keyPair{}, fmt.Errorf("make a pair of keys: %w", err)
	}
	line, err := ssh.NewPublicKey(public)
	if err != nil {
		return keyPair{}, fmt.Errorf("make a pair of keys: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(private, comment)
	if err != nil {
		return keyPair{}, fmt.Errorf("make a pair of keys: %w", err)
	}
	return keyPair{
		private: string(pem.EncodeToMemory(block)),
		public:  strings.TrimSpace(string(ssh.MarshalAuthorizedKey(line))) + " " + comment,
	}, nil
}
