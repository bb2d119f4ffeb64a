package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"aead.dev/minisign"
)

const (
	// keyVariable is the environment variable with the path of the secret key, and passwordVariable that with its password.
	keyVariable, passwordVariable = "SWITCHYARD_RELEASE_KEY", "SWITCHYARD_RELEASE_KEY_PASSWORD"
	// signatureName is the file with the signature over the checksums. `minisign -V -m SHA256SUMS` looks for it.
	signatureName = sumsName + ".minisig"
)

// readKey reads the secret key that the environment names, and checks that its public half is the one in a file.
func readKey(publicPath string, getenv func(string) string) (*minisign.PrivateKey, error) {
	path := getenv(keyVariable)
	if path == "" {
		return nil, fmt.Errorf("there is no key to sign the release with: set %s to the file of a secret key of minisign, or pass --unsigned", keyVariable)
	}
	public, err := minisign.PublicKeyFromFile(publicPath)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s does not exist, so no one could check the signature: make a pair of keys with `minisign -G -p %[1]s -s FILE` and commit the public one, or name another public key with --public-key", publicPath)
	} else if err != nil {
		return nil, fmt.Errorf("read public key %s: %w", publicPath, err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the key of %s: %w", keyVariable, err)
	}
	var key minisign.PrivateKey
	if minisign.IsEncrypted(text) {
		key, err = minisign.DecryptKey(getenv(passwordVariable), text)
	} else {
		err = key.UnmarshalText(text)
	}
	if err != nil {
		return nil, fmt.Errorf("open key %s with the password of %s: %w", path, passwordVariable, err)
	}
	if !public.Equal(key.Public()) {
		return nil, fmt.Errorf("key %s has ID %X, and %s has ID %X; sign with the secret half of that public key", path, key.ID(), publicPath, public.ID())
	}
	return &key, nil
}

// sign writes the signature over the checksums. Its trusted comment names the release.
func (r release) sign() error {
	sums, err := os.Open(filepath.Join(r.output, sumsName))
	if err != nil {
		return err
	}
	defer sums.Close()
	signed := minisign.NewReader(sums)
	if _, err := io.Copy(io.Discard, signed); err != nil {
		return err
	}
	comment := fmt.Sprintf("switchyard %s, commit %s", r.version, r.commit)
	signature := signed.SignWithComments(*r.key, comment, fmt.Sprintf("signature by key %X", r.key.ID()))
	return os.WriteFile(filepath.Join(r.output, signatureName), signature, 0o644)
}
