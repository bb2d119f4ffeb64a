package vps

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"
)

// keyPair is a generated SSH key pair for a machine. The private key is only returned to the caller and never stored.
type keyPair struct {
	private string // in OpenSSH format
	public  string // as a line of a .pub file
}

// newKeyPair generates a key pair with a comment.
func newKeyPair(comment string) (keyPair, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return keyPair{}, fmt.Errorf("generate a key pair: %w", err)
	}
	line, err := ssh.NewPublicKey(public)
	if err != nil {
		return keyPair{}, fmt.Errorf("generate a key pair: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(private, comment)
	if err != nil {
		return keyPair{}, fmt.Errorf("generate a key pair: %w", err)
	}
	return keyPair{
		private: string(pem.EncodeToMemory(block)),
		public:  strings.TrimSpace(string(ssh.MarshalAuthorizedKey(line))) + " " + comment,
	}, nil
}
