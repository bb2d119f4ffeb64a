package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/exit"
	"switchyard/cli/output"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/sshkey"
)

func newKeysAdd(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "add FILE|-",
		Short: "Add a public key, such as ~/.ssh/id_ed25519.pub",
		Long: `Adds a public key from a .pub file, or from standard input if FILE is -. The key has your
current role until it is removed, even after the token that added it is no longer valid.`,
		Args: arguments(1, 1, "FILE, or - for standard input"),
	}
	clientFlag(cmd)
	format := output.FormatFlag(cmd, output.Text, output.JSON)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error {
		text, err := readPublicKey(sys, args[0])
		if err != nil {
			return err
		}
		res, err := client.Call(ctx, a, a.Keys.AddKey, &v1.AddKeyRequest{PublicKey: text})
		if err != nil {
			return err
		}
		if format.Value == output.JSON {
			return output.WriteMessage(sys.stdout, res.GetKey())
		}
		_, err = fmt.Fprintf(sys.screen, "key %s of %s is added, role %s\n", res.GetKey().GetFingerprint(), orNoOne(res.GetKey().GetName()), res.GetKey().GetRole())
		return err
	})
	return cmd
}

// readPublicKey returns the public key in a file or on standard input. Any other text is refused here and never sent,
// because it may be a private key.
func readPublicKey(sys *system, path string) (string, error) {
	subject := path
	var text []byte
	var err error
	if path == "-" {
		subject = "standard input"
		if text, err = readBounded(sys.stdin); err != nil {
			return "", exit.Usagef("read standard input: %w", err)
		}
	} else if text, err = readSecretFile(path); err != nil {
		return "", err
	}
	keys, fault := sshkey.Parse(string(text))
	if fault == nil && len(keys) == 1 {
		return string(text), nil
	}
	if fault == nil {
		return "", exit.Usagef("%s holds %d keys; add one at a time", subject, len(keys))
	}
	if fault.Line > 1 {
		subject = fmt.Sprintf("line %d of %s", fault.Line, subject)
	}
	hint := fault.Hint
	if _, missing := os.Stat(path + ".pub"); missing == nil {
		hint = "the public key is in " + output.ShellWord(path+".pub")
	}
	if hint != "" {
		hint = "; " + hint
	}
	return "", exit.Usagef("%s %s%s", subject, fault.Reason, hint)
}

// orNoOne returns a name, or a placeholder if it is empty.
func orNoOne(name string) string {
	if name == "" {
		return "no name"
	}
	return name
}
