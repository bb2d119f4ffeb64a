package qemu

import (
	"crypto/ed25519"
	"encoding/pem"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"
)

// keyPair is an SSH key pair.
type keyPair struct {
	// private is a PEM in OpenSSH format; public is a line as in authorized_keys.
	private, public string
}

// newKeyPair returns a new ed25519 key pair.
func newKeyPair() (keyPair, error) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return keyPair{}, err
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		return keyPair{}, err
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		return keyPair{}, err
	}
	return keyPair{private: string(pem.EncodeToMemory(block)), public: strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))}, nil
}

// clientConfig returns the SSH configuration with which the node logs in to the machine of a record.
func clientConfig(r record) (*ssh.ClientConfig, error) {
	signer, err := ssh.ParsePrivateKey([]byte(r.ClientKey))
	if err != nil {
		return nil, fmt.Errorf("read the node's key for the machine: %w", err)
	}
	host, _, _, _, err := ssh.ParseAuthorizedKey([]byte(r.HostKey))
	if err != nil {
		return nil, fmt.Errorf("read the machine's key: %w", err)
	}
	return &ssh.ClientConfig{
		User: r.User, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)},
		HostKeyCallback: ssh.FixedHostKey(host), HostKeyAlgorithms: []string{ssh.KeyAlgoED25519},
	}, nil
}
