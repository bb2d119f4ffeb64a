package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"switchyard/cli/client"
	"switchyard/cli/exit"
	"switchyard/cli/output"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/nearest"
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
		if file == "" {
			return exit.Usagef("a target needs --from-file FILE, and --type %s unless the file has a type", strings.Join(kind.Allowed, "|"))
		}
		target := &v1.NotificationTarget{}
		if err := readTarget(sys, target, kind, file); err != nil {
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

// readTarget reads the configuration of a target from a file. The file may have the type, in place of the flag.
func readTarget(sys *system, target *v1.NotificationTarget, kind *output.Choice, file string) error {
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
	var root yaml.Node
	var fields map[string]any
	if err = yaml.Unmarshal(text, &root); err == nil {
		err = root.Decode(&fields)
	}
	if err != nil {
		return exit.Usagef("--from-file %s: %s", file, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if written, ok := fields["type"].(string); ok {
		if kind.Value != "" && kind.Value != written {
			return exit.Usagef("--from-file %s: its type is %s, and --type is %s; leave out one of them", file, written, kind.Value)
		}
		if err := kind.Set(written); err != nil {
			return exit.Usagef("--from-file %s: type: %w", file, err)
		}
	}
	if kind.Value == "" {
		return exit.Usagef("a target needs --type %s, or type: in its file", strings.Join(kind.Allowed, "|"))
	}
	m := target.ProtoReflect()
	field := m.Descriptor().Fields().ByName(protoreflect.Name(kind.Value))
	config := m.Mutable(field).Message()
	for _, key := range keysOf(&root) {
		if key.Value == "type" {
			continue
		}
		if err := readTargetField(config, key.Value, fields[key.Value]); err != nil {
			return exit.Usagef("--from-file %s: line %d: %w", file, key.Line, err)
		}
	}
	return nil
}

// keysOf returns the keys of the mapping of a document in YAML.
func keysOf(root *yaml.Node) (keys []*yaml.Node) {
	for _, mapping := range root.Content {
		for i := 0; i < len(mapping.Content); i += 2 {
			keys = append(keys, mapping.Content[i])
		}
	}
	return keys
}

// readTargetField sets a field of the configuration of a target.
func readTargetField(config protoreflect.Message, name string, value any) error {
	known := config.Descriptor().Fields()
	if known.ByJSONName(name) == nil {
		var names []string
		for i := range known.Len() {
			names = append(names, known.Get(i).JSONName())
		}
		return fmt.Errorf("unknown field %q; %s", name, cmp.Or(nearest.DidYouMean(name, names), "its type has "+strings.Join(names, ", ")))
	}
	document, err := json.Marshal(map[string]any{name: value})
	if err != nil {
		return err
	}
	part := config.New().Interface()
	if err := protojson.Unmarshal(document, part); err != nil {
		return fmt.Errorf("%s has a value of the wrong type", name)
	}
	proto.Merge(config.Interface(), part)
	return nil
}
