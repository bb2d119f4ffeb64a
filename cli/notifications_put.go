package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"

	"switchyard/cli/client"
	"switchyard/cli/exit"
	"switchyard/cli/output"
	v1 "switchyard/proto/switchyard/v1"
)

// maxTargetFile bounds the file of a target, in bytes.
const maxTargetFile = 64 << 10

func newNotificationsPut(sys *system) *cobra.Command {
	kind := &output.Choice{Allowed: v1.NotificationTargetTypes()}
	var file string
	cmd := &cobra.Command{
		Use:   "put NAME",
		Short: "Store a target under a name, replacing an older one",
		Long: `Stores a target under a name, replacing an older one. The file, in YAML or JSON, has the
fields of its type. Values that are secrets are written as store:NAME, and stored before
with "switchyard secrets set NAME". Messages that have not been delivered yet go to the new
target.`,
		Args: arguments(1, 1, "NAME"),
	}
	cmd.Flags().Var(kind, "type", "what receives the messages")
	cmd.Flags().StringVar(&file, "from-file", "", "file with the fields of the type; - for standard input")
	clientFlag(cmd)
	format := output.FormatFlag(cmd, output.Text, output.JSON)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error {
		if kind.Value == "" || file == "" {
			return exit.Usagef("a target needs --type %s and --from-file FILE", strings.Join(kind.Allowed, "|"))
		}
		target := &v1.NotificationTarget{}
		if err := readTarget(sys, target, kind.Value, file); err != nil {
			return err
		}
		res, err := client.Call(ctx, a, a.Notifications.PutNotificationTarget, &v1.PutNotificationTargetRequest{Name: args[0], Target: target})
		if err != nil {
			return err
		}
		if format.Value == output.JSON {
			return output.WriteMessage(sys.stdout, res.GetTarget())
		}
		done := "stored"
		if res.GetReplaced() {
			done = "replaced"
		}
		_, err = fmt.Fprintf(sys.screen, "notification target %s is %s; `switchyard notifications test %s` sends it a message\n", args[0], done, args[0])
		return err
	})
	return cmd
}

// readTarget reads the configuration of a target of a type from a file.
func readTarget(sys *system, target *v1.NotificationTarget, kind, file string) error {
	in := sys.stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return unreadable(err)
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxTargetFile))
	if err != nil {
		return unreadable(err)
	}
	var fields map[string]any
	if err := yaml.Unmarshal(text, &fields); err != nil {
		return exit.Usagef("--from-file %s: %s", file, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	document, err := json.Marshal(fields)
	if err != nil {
		return exit.Usagef("--from-file %s: %w", file, err)
	}
	m := target.ProtoReflect()
	field := m.Descriptor().Fields().ByName(protoreflect.Name(kind))
	config := m.NewField(field)
	if err := protojson.Unmarshal(document, config.Message().Interface()); err != nil {
		return exit.Usagef("--from-file %s: %s", file, strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\u00a0", " "), "proto: "))
	}
	m.Set(field, config)
	return nil
}
