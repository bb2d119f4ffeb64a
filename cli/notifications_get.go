package cli

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"switchyard/cli/client"
	"switchyard/cli/output"
	v1 "switchyard/proto/switchyard/v1"
)

func newNotificationsGet(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get NAME",
		Short: "Show a target; its secrets appear as store:NAME",
		Long: `Shows a target; its secrets appear as store:NAME. With -o yaml, it is a file for
"switchyard notifications put NAME --from-file", with the type in its first line.`,
		Args: arguments(1, 1, "NAME"),
	}
	clientFlag(cmd)
	format := output.FormatFlag(cmd, output.JSON, output.YAML)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error {
		res, err := client.Call(ctx, a, a.Notifications.GetNotificationTarget, &v1.GetNotificationTargetRequest{Name: args[0]})
		if err != nil {
			return err
		}
		if format.Value == output.JSON {
			return output.WriteMessage(sys.stdout, res.GetTarget())
		}
		text, err := targetFile(res.GetTarget())
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(sys.stdout, "type: %s\n%s", res.GetTarget().GetType(), text)
		return err
	})
	return cmd
}

// targetFile returns the fields of the type of a target in YAML.
func targetFile(target *v1.NotificationTarget) ([]byte, error) {
	m := target.ProtoReflect()
	config := m.WhichOneof(m.Descriptor().Oneofs().ByName("config"))
	if config == nil {
		return nil, fmt.Errorf("the type of notification target %s is not known to this program; use a newer one", target.GetName())
	}
	document, err := protojson.Marshal(m.Get(config).Message().Interface())
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := json.Unmarshal(document, &fields); err != nil {
		return nil, err
	}
	return yaml.Marshal(fields)
}
