package vault

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// keyBytes is the key length of AES-256.
const keyBytes = 32

// key encrypts values. Its id is derived from the key and does not reveal it.
type key struct {
	id   string
	aead cipher.AEAD
}

func newKey(secret []byte) (*key, error) {
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(append([]byte("switchyard secrets key\x00"), secret...))
	return &key{id: hex.EncodeToString(sum[:4]), aead: aead}, nil
}

// seal encrypts a value. It returns the nonce followed by the ciphertext.
func (k *key) seal(value, bound []byte) []byte {
	nonce := make([]byte, k.aead.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	return k.aead.Seal(nonce, nonce, value, bound)
}

// errForged means that a sealed value was not made by seal for the same name, role and version.
var errForged = errors.New("the record was changed in the store; set the secret again")

func (k *key) open(sealed, bound []byte) ([]byte, error) {
	if len(sealed) < k.aead.NonceSize() {
		return nil, errForged
	}
	value, err := k.aead.Open(nil, sealed[:k.aead.NonceSize()], sealed[k.aead.NonceSize():], bound)
	if err != nil {
		return nil, errForged
	}
	return value, nil
}

// readKey reads the key from a file. It returns fs.ErrNotExist if the file does not exist.
func readKey(path string) (*key, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	switch mode := info.Mode(); {
	case !mode.IsRegular():
		return nil, fmt.Errorf("%s is not a file", path)
	case mode.Perm()&0o077 != 0 && runtime.GOOS != "windows":
		return nil, fmt.Errorf("%s has the key for secrets, but others can read it (mode %04o); `chmod 600` it, and set the secrets again if others have", path, mode.Perm())
	}
	text := make([]byte, 2*keyBytes)
	n, _ := file.Read(text)
	secret, err := base64.StdEncoding.DecodeString(string(bytes.TrimSpace(text[:n])))
	if err != nil || len(secret) != keyBytes {
		return nil, fmt.Errorf("%s contains no key for secrets, which is %d bytes in base64", path, keyBytes)
	}
	return newKey(secret)
}

// createKey creates a key file and returns the key that is in the file afterwards. If several processes create it
// concurrently, all of them get the same key.
func createKey(path string) (*key, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	secret := make([]byte, keyBytes)
	_, _ = rand.Read(secret)                                                 // never fails
	made, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // with mode 0600
	if err != nil {
		return nil, err
	}
	defer os.Remove(made.Name())
	_, err = fmt.Fprintln(made, base64.StdEncoding.EncodeToString(secret))
	if err = errors.Join(err, made.Sync(), made.Close()); err != nil {
		return nil, err
	}
	if err := os.Link(made.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return readKey(path)
}
