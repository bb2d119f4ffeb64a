package cli

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"switchyard/activities/gatewayclient"
	"switchyard/activities/statedir"
	"switchyard/activities/store"
	"switchyard/cli/client"
	"switchyard/cli/config"
	"switchyard/cli/credentials"
	"switchyard/cli/doctor"
	"switchyard/cli/exit"
	"switchyard/cli/output"
	"switchyard/cli/tlsfiles"
	"switchyard/workers"
	"switchyard/workers/node"
)

// doctorFlags lists the flags of gateway and worker that checks read. The help shows these alone.
var doctorFlags = []string{
	"address", "ssh-address", "store", "secrets-key", "admin-token-file", "tls-cert", "tls-key", "tls-client-ca", "peer-ca",
	"name", "spool-dir", "scratch-dir", "temp-dir", "metrics-address", gatewayFlagName, tokenFileFlagName, caFlagName, clientCertFlagName, clientKeyFlagName,
}

func newDoctor(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor [gateway] [worker] [client]",
		Short: "Check what this machine needs, and say what to do about what is missing",
		Long: `Checks what this machine needs for roles, and says what to do about what is missing. Without
a role it checks those that the settings suggest: gateway or worker if one of their own
settings is set or /etc/switchyard has a file for them, and client if a gateway is named or
nothing else is set.

It reads the flags, the environment and the settings file of gateway and worker, and accepts
all of their flags, so the flags of a unit can be repeated here. Run it as the user of the
role. It changes nothing.

Exit codes: 0 nothing failed, 1 a check failed, 2 bad usage.`,
		ValidArgs: doctor.Roles,
		Args: func(_ *cobra.Command, args []string) error {
			for _, arg := range args {
				if !slices.Contains(doctor.Roles, arg) {
					return exit.Usagef("there is no role %q; use %s", arg, strings.Join(doctor.Roles, ", "))
				}
			}
			return nil
		},
	}
	for _, role := range []string{doctor.RoleGateway, doctor.RoleWorker} {
		cmd.Flags().AddFlagSet(roleCommands[role](sys).Flags())
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) { f.Hidden = !slices.Contains(doctorFlags, f.Name) })
	format := output.FormatFlag(cmd, output.Text, output.JSON)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		around := doctor.Surroundings{Version: version(), Logger: slog.New(slog.DiscardHandler), Now: sys.now}
		flags := map[string]*roleFlags{}
		for _, role := range doctor.Roles {
			of, err := sys.flagsOf(cmd, role)
			if err != nil {
				return err
			}
			if slices.Contains(args, role) || len(args) == 0 && (of.suggested || role == doctor.RoleClient && len(flags) == 0) {
				flags[role] = of
			}
		}
		if flags[doctor.RoleGateway] != nil || flags[doctor.RoleWorker] != nil {
			if around.Temporal, around.TemporalError = workers.Dial(cmd.Context(), workers.DialOptions{Logger: around.Logger}); around.TemporalError == nil {
				defer around.Temporal.Close()
			}
		}
		var roles []doctor.Settings
		for _, role := range doctor.Roles {
			if flags[role] != nil {
				roles = append(roles, flags[role].settings(around.Temporal))
			}
		}
		found := doctor.Examine(cmd.Context(), around, roles)
		if err := sys.writeFindings(format.Value, found); err != nil {
			return err
		}
		if slices.ContainsFunc(found, func(f doctor.Finding) bool { return f.Result == doctor.Failed }) {
			return exit.Silent(exit.CodeNotDone)
		}
		return nil
	}
	return cmd
}

// writeFindings prints findings, with the remedy of each below it.
func (s *system) writeFindings(format string, found []doctor.Finding) error {
	if format == output.JSON {
		return output.WriteJSON(s.stdout, map[string]any{"items": found})
	}
	counts := map[doctor.Result]int{}
	t := tabwriter.NewWriter(s.stdout, 0, 0, 2, ' ', 0)
	for _, f := range found {
		counts[f.Result]++
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", f.Result, f.Role, f.Check, f.Detail)
		if f.Remedy != "" {
			fmt.Fprintf(t, "\t\t\t-> %s\n", f.Remedy)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(s.stdout, "\n%d ok, %d warnings, %d failed, %d skipped\n", counts[doctor.OK], counts[doctor.Warning], counts[doctor.Failed], counts[doctor.Skipped])
	return err
}

// roleCommands holds the command whose flags set up a role. whoami has those of all clients.
var roleCommands = map[string]func(*system) *cobra.Command{doctor.RoleGateway: newGateway, doctor.RoleWorker: newWorker, doctor.RoleClient: newWhoami}

// roleFlags holds the flags of a role's command, as a start of this command would set them.
type roleFlags struct {
	sys  *system
	role string
	cmd  *cobra.Command
	// suggested is set if the settings or the machine suggest the role.
	suggested bool
}

// settingsFolder is where packages put the settings files of the roles.
const settingsFolder = "/etc/switchyard"

// flagsOf returns the flags of a role. Those of the doctor apply to every role that has them.
func (s *system) flagsOf(cmd *cobra.Command, role string) (*roleFlags, error) {
	r := &roleFlags{sys: &system{screen: s.screen, getenv: s.getenv}, role: role}
	var err error
	if r.cmd, _, err = newRoot(s).Find([]string{roleCommands[role](s).Name()}); err != nil {
		return nil, err
	}
	if err := r.cmd.ParseFlags(nil); err != nil { // adds the flags of the root
		return nil, err
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if same := r.cmd.Flags().Lookup(f.Name); err == nil && same != nil && f.Name != "output" {
			err = copyFlag(same, f)
		}
	})
	file, installed := r.cmd.Flags().Lookup(config.Flag), filepath.Join(settingsFolder, role+".yaml")
	if _, statErr := os.Stat(installed); err == nil && statErr == nil && file.Value.String() == "" && s.getenv(config.Variable(config.Flag)) == "" {
		r.suggested = true
		err = file.Value.Set(installed)
	}
	if err != nil {
		return nil, err
	}
	if r.sys.origins, err = config.Apply(r.cmd, s.getenv); err != nil {
		return nil, err
	}
	if role == doctor.RoleClient {
		_, err := os.Stat(credentials.Path(s.getenv))
		r.suggested = err == nil || r.sys.origins[gatewayFlagName] != ""
		return r, nil
	}
	for flag := range r.sys.origins {
		r.suggested = r.suggested || isOwnFlag(s, flag, role)
	}
	return r, nil
}

// isOwnFlag reports whether only one role has a flag.
func isOwnFlag(sys *system, flag, role string) bool {
	for other, command := range roleCommands {
		if has := command(sys).Flags().Lookup(flag) != nil; has != (other == role) {
			return false
		}
	}
	return true
}

// copyFlag sets a flag to the value of another one.
func copyFlag(to, from *pflag.Flag) error {
	to.Changed = true
	if list, isList := from.Value.(pflag.SliceValue); isList {
		return to.Value.(pflag.SliceValue).Replace(list.GetSlice())
	}
	return to.Value.Set(from.Value.String())
}

// settings returns what the flags say. What they leave out is where the command looks without them.
func (r *roleFlags) settings(temporal *workers.Connection) doctor.Settings {
	d := &roleSettings{Settings: doctor.Settings{Role: r.role, Store: r.flag("store")}, flags: r}
	switch r.role {
	case doctor.RoleGateway:
		d.addGateway(temporal)
	case doctor.RoleWorker:
		d.addWorker()
	case doctor.RoleClient:
		d.addClient(r.flag(gatewayFlagName))
		d.addPrivate("file of logins", credentials.Path(r.sys.getenv), false)
	}
	if r.role != doctor.RoleClient {
		d.addFolder("store", d.Store)
		if state, err := statedir.Dir(); err == nil {
			d.addFolder("state", state)
		}
	}
	if r.cmd.PreRunE != nil {
		d.StartError = r.cmd.PreRunE(r.cmd, nil)
	}
	return d.Settings
}

func (r *roleFlags) flag(name string) string { return stringFlag(r.cmd, name) }

// roleSettings collects the settings of a role.
type roleSettings struct {
	doctor.Settings
	flags *roleFlags
}

func (d *roleSettings) addPrivate(what, path string, group bool) {
	if path != "" {
		d.PrivateFiles = append(d.PrivateFiles, doctor.PrivateFile{What: what, Path: path, Group: group})
	}
}

// addCertificate adds a certificate that the role presents.
func (d *roleSettings) addCertificate(flag string, load func(path string) error) {
	if path := d.flags.flag(flag); path != "" {
		d.Certificates = append(d.Certificates, doctor.Certificate{Flag: "--" + flag, Path: path, Load: func() error { return load(path) }, Reloads: true})
	}
}

// addAuthorities adds the certificates of authorities that the role trusts.
func (d *roleSettings) addAuthorities(flag string) {
	if path := d.flags.flag(flag); path != "" {
		load := func() error {
			_, err := tlsfiles.Client{CA: path}.Config()
			return err
		}
		d.Certificates = append(d.Certificates, doctor.Certificate{Flag: "--" + flag, Path: path, Load: load})
	}
}

func (d *roleSettings) addFolder(what, path string) {
	if dir, isFolder := store.FolderOf(path); isFolder {
		d.Folders = append(d.Folders, doctor.Folder{What: what, Path: dir})
	}
}

func (d *roleSettings) addPort(flag string) {
	if address := d.flags.flag(flag); address != "" && address != noMetrics {
		// As for the worker, metrics at their default address are optional.
		isOptional := flag == "metrics-address" && d.flags.sys.origins[flag] == ""
		d.Ports = append(d.Ports, doctor.Port{Flag: "--" + flag, Address: address, Optional: isOptional})
	}
}

func (d *roleSettings) addGateway(temporal *workers.Connection) {
	flag, getenv := d.flags.flag, d.flags.sys.getenv
	if data, err := dataFolder(getenv); err == nil && d.Store == "" && temporal != nil {
		d.Store = fleetStore(data, temporal.Fleet)
	}
	d.addPort("address")
	d.addPort("ssh-address")
	d.addCertificate("tls-cert", func(path string) error {
		_, err := tlsfiles.Server{Cert: path, Key: flag("tls-key")}.Config()
		return err
	})
	d.addAuthorities("tls-client-ca")
	d.addAuthorities("peer-ca")
	d.addPrivate("key", flag("tls-key"), true)
	for what, file := range map[string][2]string{"secrets key": {"secrets-key", ".secrets-key"}, "first admin token": {"admin-token-file", ".admin-token"}} {
		path := flag(file[0])
		if path == "" {
			path, _ = besideStore(d.Store, file[1], getenv) // without a data directory, there is no such file
		}
		d.addPrivate(what, path, false)
	}
}

func (d *roleSettings) addWorker() {
	flag := d.flags.flag
	if d.Node = flag("name"); d.Node == "" {
		hostname, _ := os.Hostname() // a worker without a host name refuses to start
		d.Node = node.Name(hostname)
	}
	d.Store = workerStore(d.Store, flag(gatewayFlagName))
	d.addPort("metrics-address")
	if spool, err := spoolOr(flag("spool-dir"), d.Store, d.Node); err == nil {
		d.Spool = spool
		d.addFolder("spool", spool)
	}
	d.addFolder("scratch folder", cmp.Or(flag("scratch-dir"), os.TempDir()))
	d.addFolder("folder of temporary files", flag("temp-dir"))
	d.addClient(gatewaysOf(d.Store, flag(gatewayFlagName)))
}

// addClient adds what a client of the gateways at addresses needs.
func (d *roleSettings) addClient(addresses string) {
	var options client.Options
	list, err := d.flags.sys.parseGateways(addresses)
	if err == nil {
		options, err = d.flags.sys.clientOptions(d.flags.cmd, list)
	}
	if d.GatewayError = err; err == nil {
		for i := range list {
			single := list[i : i+1]
			d.Gateways = append(d.Gateways, doctor.Gateway{Client: client.New(single, options), Store: gatewayclient.New(single, gatewayclient.Options{
				Token: func() string { return options.Token }, TLS: options.TLS, Identify: store.GatewayIdentity,
			})})
		}
	}
	d.addPrivate("token", d.flags.flag(tokenFileFlagName), false)
	d.addPrivate("key", d.flags.flag(clientKeyFlagName), true)
	d.addAuthorities(caFlagName)
	d.addCertificate(clientCertFlagName, func(path string) error {
		_, err := tlsfiles.Client{Cert: path, Key: d.flags.flag(clientKeyFlagName)}.Config()
		return err
	})
}
