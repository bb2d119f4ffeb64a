package cli

import (
	"bytes"
	"context"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"switchyard/cli/credentials"
	"switchyard/cli/exit"
)

const (
	passphraseFlagName = "passphrase-file"
	// passphraseVariable holds the pass phrase. There is no flag for it because every user of a machine sees the flags of a process.
	passphraseVariable = "SWITCHYARD_PASSPHRASE"
)

// passphraseFlag adds the flag for the pass phrase that seals secrets in a file.
func passphraseFlag(cmd *cobra.Command) {
	cmd.Flags().String(passphraseFlagName, "", "file with the pass phrase for the secrets, which must be private (default $"+passphraseVariable+", else it is asked for)")
}

// givenPassphrase returns the pass phrase that a flag or the environment sets, or "" if none does.
func (s *system) givenPassphrase(cmd *cobra.Command) (string, error) {
	path := stringFlag(cmd, passphraseFlagName)
	if path == "" {
		return s.getenv(passphraseVariable), nil
	}
	text, err := credentials.ReadPassphrase(path)
	if err == nil && text == "" {
		err = exit.Usagef("%s contains no pass phrase", path)
	}
	return text, err
}

// askPassphrase asks for a pass phrase, and once more if a typing error would make a file useless.
func (s *system) askPassphrase(ctx context.Context, twice bool) (string, error) {
	if file, ok := s.stdin.(*os.File); !ok || !term.IsTerminal(int(file.Fd())) {
		return "", exit.Usagef("a pass phrase for the secrets is missing; name a file with --%s, set %s, or leave the secrets out with --skip secret", passphraseFlagName, passphraseVariable)
	}
	first, err := s.readSecret(ctx, "pass phrase for the secrets (hidden): ")
	if err != nil || !twice {
		return string(first), err
	}
	second, err := s.readSecret(ctx, "the same again (hidden): ")
	switch {
	case err != nil:
		return "", err
	case !bytes.Equal(first, second):
		return "", exit.Usagef("the pass phrases are different; nothing has been written")
	case len(first) == 0:
		return "", exit.Usagef("the pass phrase is empty; nothing has been written")
	}
	return string(first), nil
}
