package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"switchyard/cli/client"
	"switchyard/cli/exit"
	"switchyard/cli/output"
	v1 "switchyard/proto/switchyard/v1"
)

func newShares(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use: "shares", Short: "Set which part of the fleet the owners of runs get while others have tasks, too",
		Args: subcommands, RunE: help,
	}
	cmd.AddCommand(newSharesSet(sys), newOwnersReset(sys, "share", &v1.SetOwnerRequest{Share: &v1.Share{Weight: 1}}), newSharesList(sys))
	return cmd
}

func newSharesSet(sys *system) *cobra.Command {
	share := &v1.Share{}
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Set the weight of an owner, or the weight and the members of a group of owners",
		Long: `Set the weight of an owner, or the weight and the members of a group of owners. Owners and
groups that have tasks get the fleet in proportion to their weights; those without a share have the
weight 1. The members of a group share what the group gets, in proportion to their own weights.`,
		Example: `  switchyard shares set ann --weight 2
  switchyard shares set team-a --weight 3 --member bob --member cy`,
		Args: arguments(1, 1, "NAME"),
	}
	clientFlag(cmd)
	cmd.Flags().Float64Var(&share.Weight, "weight", 0, "weight, above 0 and up to 1000")
	cmd.Flags().StringSliceVar(&share.Members, "member", nil, "owner who is a member of the group; may be repeated")
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error {
		if !cmd.Flags().Changed("weight") {
			return exit.Usagef("--weight is missing: the command sets the weight and the members anew")
		}
		res, err := client.Call(ctx, a, a.Owners.SetOwner, &v1.SetOwnerRequest{Name: args[0], Share: share})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(sys.screen, "%s has the weight %s%s\n", args[0], shortNumber(weightOf(res.GetOwner().GetShare())), membersText(res.GetOwner().GetShare()))
		return err
	})
	return cmd
}

// weightOf returns the weight of a share, which may be nil.
func weightOf(s *v1.Share) float64 {
	if s == nil {
		return 1
	}
	return s.GetWeight()
}

// membersText returns the members of a group for people, or "" for an owner.
func membersText(s *v1.Share) string {
	if len(s.GetMembers()) == 0 {
		return ""
	}
	return ", shared by " + strings.Join(s.GetMembers(), ", ")
}

// newOwnersReset returns the command that gives an owner the default share or quota.
func newOwnersReset(sys *system, what string, req *v1.SetOwnerRequest) *cobra.Command {
	cmd := &cobra.Command{Use: "remove NAME", Short: "Remove the " + what + " of an owner or a group", Args: arguments(1, 1, "NAME")}
	clientFlag(cmd)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error {
		req.Name = args[0]
		if _, err := client.Call(ctx, a, a.Owners.SetOwner, req); err != nil {
			return err
		}
		_, err := fmt.Fprintf(sys.screen, "%s has no %s of its own\n", args[0], what)
		return err
	})
	return cmd
}

// ownersList returns the command that lists owners in a table.
func ownersList(sys *system, short string, header []string, row func(*v1.Owner) []string) *cobra.Command {
	return listCommand[*v1.Owner]{
		use: "list", short: short,
		what: "owners", limit: 100, most: 1000,
		fetch: func(ctx context.Context, a *client.Client, _ []string, size int32, token string) (listPage[*v1.Owner], error) {
			return client.Call(ctx, a, a.Owners.ListOwners, &v1.ListOwnersRequest{PageSize: size, PageToken: token})
		},
		rows: func(items []*v1.Owner) [][]string {
			rows := [][]string{header}
			for _, owner := range items {
				if cells := row(owner); cells != nil {
					rows = append(rows, cells)
				}
			}
			return rows
		},
	}.command(sys)
}

func newSharesList(sys *system) *cobra.Command {
	return ownersList(sys, "List the owners and groups with their weights and what they use", ownersHeader, ownersRow)
}

// ownersHeader and ownersRow are the table of `shares list` and of `queue --by owner`.
var ownersHeader = []string{"OWNER", "GROUP", "WEIGHT", "SHARE", "HELD", "LATELY", "RUNNING", "WAITING", "CORES", "GPUS", "MEMBERS"}

func ownersRow(o *v1.Owner) []string {
	use := o.GetUse()
	return []string{
		ownerName(o.GetName()), use.GetGroup(), shortNumber(weightOf(o.GetShare())), percentText(use.GetEntitled()), percentText(use.GetHeld()), percentText(use.GetLately()),
		strconv.Itoa(int(use.GetRunning())), strconv.Itoa(int(use.GetWaiting())), shortNumber(use.GetCores()), shortNumber(use.GetGpus()), strings.Join(o.GetShare().GetMembers(), ","),
	}
}

// ownerName returns the name of an owner as tables show it.
func ownerName(name string) string {
	if name == "" {
		return "(unknown)"
	}
	return name
}

// percentText returns a part from 0 to 1 in percent.
func percentText(part float64) string { return strconv.FormatFloat(100*part, 'f', 0, 64) + "%" }

func newQuotas(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use: "quotas", Short: "Limit what the owners of runs use of the fleet at once",
		Args: subcommands, RunE: help,
	}
	cmd.AddCommand(newQuotasSet(sys), newOwnersReset(sys, "quota", &v1.SetOwnerRequest{Quota: &v1.Quota{}}), newQuotasList(sys))
	return cmd
}

func newQuotasSet(sys *system) *cobra.Command {
	quota := &v1.Quota{}
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Set the quota of an owner or a group; what is not given is not limited",
		Long: `Set the quota of an owner or a group; what is not given is not limited. Tasks that would exceed
cores, GPUs or tasks wait until others of the owner have ended. The number of open runs is checked
when a run is submitted; with several gateways, or many runs in the same second, there may be a few
more.`,
		Example: "  switchyard quotas set ann --cores 32 --gpus 4 --runs 100 --tasks 10000",
		Args:    arguments(1, 1, "NAME"),
	}
	clientFlag(cmd)
	format := output.FormatFlag(cmd, output.Text, output.JSON)
	f := cmd.Flags()
	f.Float64Var(&quota.Cores, "cores", 0, "most cores that its tasks hold at once")
	f.Float64Var(&quota.Gpus, "gpus", 0, "most GPUs that its tasks hold at once")
	f.Int32Var(&quota.Tasks, "tasks", 0, "most tasks that hold a place on a node at once")
	f.Int32Var(&quota.Runs, "runs", 0, "most open runs")
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error {
		if proto.Equal(quota, &v1.Quota{}) {
			return exit.Usagef("give at least one of --cores, --gpus, --tasks and --runs, each above 0; `switchyard quotas remove %s` removes all limits", args[0])
		}
		res, err := client.Call(ctx, a, a.Owners.SetOwner, &v1.SetOwnerRequest{Name: args[0], Quota: quota})
		if err != nil {
			return err
		}
		if format.Value == output.JSON {
			return output.WriteMessage(sys.stdout, res.GetOwner())
		}
		_, err = fmt.Fprintf(sys.screen, "%s may use at most %s at once, and has no other limit\n", args[0], quotaText(res.GetOwner().GetQuota()))
		return err
	})
	return cmd
}

// quotaText lists the limits of a quota.
func quotaText(q *v1.Quota) string {
	var parts []string
	add := func(n float64, unit string) {
		if n == 1 {
			unit = strings.TrimSuffix(unit, "s")
		}
		if n > 0 {
			parts = append(parts, shortNumber(n)+" "+unit)
		}
	}
	add(q.GetCores(), "cores")
	add(q.GetGpus(), "GPUs")
	add(float64(q.GetTasks()), "tasks")
	add(float64(q.GetRuns()), "runs")
	return strings.Join(parts, ", ")
}

func newQuotasList(sys *system) *cobra.Command {
	header := []string{"OWNER", "CORES", "GPUS", "TASKS", "RUNS", "WAITING"}
	return ownersList(sys, "List the owners and groups that have a quota, with what they use of it", header, func(o *v1.Owner) []string {
		q, use := o.GetQuota(), o.GetUse()
		if q == nil {
			return nil
		}
		of := func(used, limit float64) string {
			if limit == 0 {
				return ""
			}
			return shortNumber(used) + " of " + shortNumber(limit)
		}
		runs := ""
		if q.GetRuns() > 0 {
			runs = "at most " + strconv.Itoa(int(q.GetRuns()))
		}
		return []string{
			o.GetName(), of(use.GetCores(), q.GetCores()), of(use.GetGpus(), q.GetGpus()), of(float64(use.GetRunning()), float64(q.GetTasks())),
			runs, strconv.Itoa(int(use.GetWaiting())),
		}
	})
}
