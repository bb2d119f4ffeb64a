package drill

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Roles are the parts of a deployment that are upgraded one after the other.
var Roles = []string{"gateways", "workers", "clients"}

// mixedTime is how long runs are submitted before the next role is upgraded.
const mixedTime = 3 * time.Second

// drainSoon makes a worker that stops move the tasks that do not end soon.
var drainSoon = []string{"--drain-timeout", "2s"}

// faultOfVersions matches what a log says if two versions do not understand each other.
var faultOfVersions = regexp.MustCompile(`(?i)nondeterminis|TMPRL1100|unable to (de|en)code|cannot unmarshal|proto: |panic|unknown (update|signal|query) `)

// Guide is what a guide says about an upgrade.
type Guide struct {
	// Commands holds the commands for the machine of each member of a role. The key is the role.
	Commands map[string]string
	// Check holds the commands that compare the versions after an upgrade.
	Check string
	// WorkerEnv is the environment of the service of a worker.
	WorkerEnv []string
}

// Upgrade follows a guide to replace the programs of a deployment under load, one role after the other in an order of [Roles], from
// those at o.Earlier to those at o.Binary. Two gateways and two workers are behind a proxy that deals the calls to both gateways.
// Nothing is lost or done twice, and no log shows that one version did not understand the other.
func Upgrade(ctx context.Context, o Options, order []string, guide Guide) error {
	y, err := openCluster(ctx, o)
	if err != nil {
		return err
	}
	y.workerEnv = guide.WorkerEnv
	return errors.Join(y.upgrade(order, guide), y.close())
}

func (y *Cluster) upgrade(order []string, guide Guide) (err error) {
	workers := []string{"a", "b"}
	y.programs = map[string]string{clientName: y.Earlier, gatewayName(0): y.Earlier, gatewayName(1): y.Earlier, "a": y.Earlier, "b": y.Earlier}
	if err := y.startServer(); err != nil {
		return err
	}
	for range 2 {
		if err := y.startGateway(); err != nil {
			return err
		}
	}
	if y.dealer, err = y.startDealer(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, y.dealer.close()) }()
	for _, w := range workers {
		if err := y.startWorker(w, drainSoon...); err != nil {
			return err
		}
	}
	if err := y.awaitNodes(workers...); err != nil {
		return err
	}
	gate := y.gate("work")
	long, tasks, err := y.runOn("", y.crowd("long", 4, job{gate: gate}))
	if err != nil {
		return err
	}
	stop := make(chan struct{})
	var ids []string
	var loadErr error
	var load sync.WaitGroup
	load.Go(func() { ids, loadErr = y.load(stop) })
	err = y.pause(mixedTime)
	for _, role := range order {
		if err == nil {
			err = y.upgradeRole(role, y.hosts(role, workers), guide)
		}
		if err == nil {
			err = y.pause(mixedTime)
		}
	}
	close(stop)
	load.Wait()
	if err := errors.Join(err, loadErr, y.open(gate)); err != nil {
		return err
	}
	for _, id := range append(ids, long) {
		if _, err := y.finished(id); err != nil {
			return err
		}
	}
	before, after := y.dealer.servedBy(y.Earlier), y.dealer.servedBy(y.Binary)
	y.report("%s: %d runs beside %d long tasks; the earlier gateways have served %d calls, the later ones %d", strings.Join(order, ", "), len(ids), len(tasks), before, after)
	if before == 0 || after == 0 {
		return fmt.Errorf("the earlier gateways have served %d calls, the later ones %d", before, after)
	}
	if err := y.sameVersions(guide.Check); err != nil {
		return err
	}
	return y.understood(append(workers, gatewayName(0), gatewayName(1)))
}

// Rehearse follows the commands of a guide on machines with members that do nothing, which takes a moment.
func Rehearse(ctx context.Context, o Options, guide Guide) error {
	y, err := openCluster(ctx, o)
	if err != nil {
		return err
	}
	return errors.Join(y.rehearse(guide), y.close())
}

func (y *Cluster) rehearse(guide Guide) error {
	y.programs = map[string]string{clientName: y.Earlier}
	y.gateways = []string{"http://127.0.0.1:1"}
	for _, role := range Roles {
		hosts := y.hosts(role, []string{"a"})
		for _, h := range hosts {
			if h.service == "" {
				continue
			}
			y.setProgram(h.member, y.Earlier)
			h.start = func() error { return y.startIdle(h.member) }
			if err := h.start(); err != nil {
				return err
			}
		}
		if err := y.upgradeRole(role, hosts, guide); err != nil {
			return err
		}
	}
	return nil
}

// startIdle starts a member that only waits for SIGTERM.
func (y *Cluster) startIdle(name string) error {
	p, err := y.startProcess(name, y.env(), "sh", "-c", "trap 'exit 0' TERM; echo Ready; while :; do sleep 0.1; done")
	if err == nil {
		_, err = p.Field(y.ctx, "Ready")
	}
	return err
}

// hosts returns the machines of the members of a role.
func (y *Cluster) hosts(role string, workers []string) (hosts []*host) {
	switch role {
	case "clients":
		return []*host{y.clientHost()}
	case "gateways":
		for i := range y.gateways {
			hosts = append(hosts, &host{Cluster: y, member: gatewayName(i), service: "switchyard-gateway", start: func() error { return y.restartGateway(i) }})
		}
	case "workers":
		for _, w := range workers {
			hosts = append(hosts, &host{Cluster: y, member: w, service: "switchyard-worker@" + w, start: func() error {
				if err := y.startWorker(w, drainSoon...); err != nil {
					return err
				}
				return y.awaitNodes(w)
			}})
		}
	}
	return hosts
}

// upgradeRole follows the commands for a role on its machines, one after the other.
func (y *Cluster) upgradeRole(role string, hosts []*host, guide Guide) error {
	for _, h := range hosts {
		if _, err := h.follow(y.ctx, guide.Commands[role]); err != nil {
			return err
		}
		if h.program(h.member) != y.Binary {
			return fmt.Errorf("the commands for %s do not upgrade the machine of %s", role, h.member)
		}
	}
	return nil
}

// clientHost returns the machine on which commands are given.
func (y *Cluster) clientHost() *host { return &host{Cluster: y, member: clientName} }

// sameVersions checks that the commands of a guide see the later program everywhere.
func (y *Cluster) sameVersions(check string) error {
	said, err := y.clientHost().follow(y.ctx, check)
	if err == nil && !sameVersion.MatchString(said) {
		err = fmt.Errorf("after the upgrade the commands of the guide print\n%s", said)
	}
	return err
}

// sameVersion matches the finding of `switchyard doctor` that all programs have one version.
var sameVersion = regexp.MustCompile(`(?m)^ok +client +versions .* like all `)

// replaceProgram stops a member as systemd would, and starts another program.
func (y *Cluster) replaceProgram(name, program string, start func() error) error {
	if err := y.terminate(name); err != nil {
		return err
	}
	y.setProgram(name, program)
	return start()
}

// terminate stops a member as systemd would, and waits for its end.
func (y *Cluster) terminate(name string) error {
	p := y.process(name)
	y.struck(name)
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(y.ctx, y.Scale.Limit)
	defer cancel()
	if code, err := p.Wait(ctx); err != nil || code != 0 {
		return fmt.Errorf("%s exits with %d after SIGTERM: %w: %s", name, code, err, p.LastWords())
	}
	return nil
}

// understood checks that the logs of members show no fault between versions.
func (y *Cluster) understood(members []string) error {
	var errs []error
	for _, name := range members {
		for line := range strings.Lines(y.process(name).Stderr.String()) {
			if faultOfVersions.MatchString(line) {
				errs = append(errs, fmt.Errorf("%s logs: %s", name, strings.TrimSpace(line)))
			}
		}
	}
	return errors.Join(errs...)
}
