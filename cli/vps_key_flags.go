package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/pflag"

	"switchyard/cli/exit"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/sshkey"
)

// maxPublicKeys is the largest file of public keys, in bytes.
const maxPublicKeys = 64 << 10

// printKey is the value of --generate-key that prints the private key.
const printKey = "-"

// vpsKeyFlags holds the flags for who may log in to a machine.
type vpsKeyFlags struct {
	public   string
	generate string // file for the private key, printKey, or "" to generate none
}

func (f *vpsKeyFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.public, "ssh-key", "", "file with the public keys that can log in, such as ~/.ssh/id_ed25519.pub")
	flags.StringVar(&f.generate, "generate-key", "", "create a key pair and write the private key to this file, which must not exist; without a file it is printed")
	flags.Lookup("generate-key").NoOptDefVal = printKey
}

func (f *vpsKeyFlags) generates() bool { return f.generate != "" }

// file returns the file for the private key, or "" if the key is printed.
func (f *vpsKeyFlags) file() string {
	if f.generate == printKey {
		return ""
	}
	return f.generate
}

// publicKey returns the contents of the file of --ssh-key, or "" if there is none. A private key never leaves this
// machine.
func (f *vpsKeyFlags) publicKey() (string, error) {
	if f.public == "" {
		return "", nil
	}
	if f.generates() {
		return "", exit.Usagef("--ssh-key and --generate-key are mutually exclusive; use one of them")
	}
	text, err := os.ReadFile(f.public)
	if err != nil {
		return "", exit.Usagef("--ssh-key: %w", err)
	}
	if len(text) > maxPublicKeys {
		return "", exit.Usagef("--ssh-key %s: it has %d bytes; at most %d are allowed", f.public, len(text), maxPublicKeys)
	}
	if _, fault := sshkey.Parse(string(text)); fault != nil {
		where := ""
		if fault.Line > 1 {
			where = fmt.Sprintf("line %d ", fault.Line)
		}
		return "", &exit.Error{Code: exit.CodeUsage, Err: fmt.Errorf("--ssh-key %s: %s%s", f.public, where, fault.Reason), Hint: fault.Hint}
	}
	return string(text), nil
}

// keyFile is a file for a private key. Its methods are no-ops on nil.
type keyFile struct {
	file    *os.File
	written bool
}

// createFile creates the file for the private key before the machine exists, so that no key is lost. It returns nil if
// no file is needed.
func (f *vpsKeyFlags) createFile() (*keyFile, error) {
	if !f.generates() || f.file() == "" {
		return nil, nil
	}
	file, err := os.OpenFile(f.file(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, exit.Usagef("--generate-key %s: the file exists; name one that does not", f.file())
	}
	if err != nil {
		return nil, exit.Usagef("--generate-key: %w", err)
	}
	return &keyFile{file: file}, nil
}

// write writes the private key of a response to the file.
func (k *keyFile) write(res *v1.CreateVpsResponse) error {
	if k == nil {
		return nil
	}
	_, err := k.file.WriteString(res.GetPrivateKey())
	if err := errors.Join(err, k.file.Close()); err != nil {
		return fmt.Errorf("write the private key of machine %s, which `switchyard vps kill %[1]s` ends: %w", res.GetId(), err)
	}
	k.written = true
	return nil
}

// discard removes the file unless the key has been written.
func (k *keyFile) discard() {
	if k == nil || k.written {
		return
	}
	// If the removal fails, an empty file or a useless part of a key remains.
	_ = k.file.Close()
	_ = os.Remove(k.file.Name())
}
